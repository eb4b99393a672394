import type { QueryClass } from '../../http/input/parameters.js';
import { queryOfHandler } from '../../http/input/query.js';
import { operationOf } from '../../http/output/openapi.js';
import { propertiesOf } from '../../http/output/schema.js';
import type { Route } from '../../http/route-table.js';

type Json = Record<string, unknown>;

/** The classes that a query of the route can have. */
export function queryClasses(route: Route): QueryClass[] {
  const accepted = queryOfHandler(route.handler);
  if (accepted === undefined) return [];
  return typeof accepted === 'function' ? [accepted] : [accepted.absent, ...Object.values(accepted.values)];
}

/** The query parameters of a route, those of all its variants together. */
export function queryParameters(route: Route): Json[] {
  const accepted = queryOfHandler(route.handler);
  if (accepted === undefined) return [];
  if (typeof accepted === 'function') return parametersOf(accepted);
  const all = new Map<string, Json>();
  for (const variant of queryClasses(route)) {
    for (const parameter of parametersOf(variant)) {
      const known = all.get(parameter.name as string);
      // The same name means the same in each variant; only the accepted values differ.
      if (known) known.schema = withAllValues(known.schema as Json, parameter.schema as Json);
      else all.set(parameter.name as string, { ...parameter, required: false });
    }
  }
  // Generated clients send what is declared as a default, and a variant refuses what it does not know; `x-variants` has the defaults.
  for (const { schema } of all.values()) delete (schema as Json).default;
  const by = all.get(accepted.by) ?? { name: accepted.by, in: 'query', required: false };
  by.schema = { type: 'string', enum: Object.keys(accepted.values) };
  all.set(accepted.by, by);
  return [...all.values()];
}

/** What each value of the deciding parameter returns, and its parameters. OpenAPI itself cannot express that. */
export function describeVariants(route: Route): Json[] | undefined {
  const accepted = queryOfHandler(route.handler);
  const { variants } = operationOf(route.handler);
  if (accepted === undefined || typeof accepted === 'function' || !variants) return undefined;
  return Object.entries(variants).map(([value, { name, summary, description, response }]) => ({
    name,
    ...(value === '' ? {} : { value }),
    by: accepted.by,
    summary,
    description,
    parameters: parametersOf(value === '' ? accepted.absent : accepted.values[value]!).filter(
      (parameter) => parameter.name !== accepted.by,
    ),
    schema: response,
  }));
}

function withAllValues(one: Json, other: Json): Json {
  if (!Array.isArray(one.enum) || !Array.isArray(other.enum)) return one;
  return { ...one, enum: [...new Set<unknown>([...one.enum, ...other.enum])] };
}

/** The parameters that a class of queries declares. */
export function parametersOf(query: QueryClass): Json[] {
  const defaults = new query() as Record<string, unknown>;
  return [...propertiesOf(query)].map(([name, { schema, required }]) => {
    const { description, style, explode, ...rules } = schema;
    return {
      name,
      in: 'query',
      required,
      description,
      ...(style ? { style, explode } : {}),
      schema: { ...rules, ...(defaults[name] === undefined ? {} : { default: defaults[name] }) },
    };
  });
}
