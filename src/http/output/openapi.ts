import { MAX_ID } from '../../values/vocabulary.js';
import type { QueryClass, QueryVariants } from '../input/parameters.js';
import {
  booleanField,
  countField,
  cursorField,
  IN_NODE,
  integerField,
  objectField,
  objectListField,
  textField,
  type ResponseField,
} from '../../model/response.js';
import type { ProblemCode } from './problems.js';
import {
  deprecation,
  deprecationsIn,
  Model,
  propertiesOf,
  refTo,
  schemasUsedBy,
  type JsonSchema,
} from '../../model/json-schema.js';

export const Pagination = new Model('Pagination', {
  limit: integerField(IN_NODE, { minimum: 1, maximum: 100, description: 'Maximum number of items per page' }),
  count: countField(IN_NODE, 'Number of items on this page'),
  total: countField(IN_NODE, 'Exact number of items on all pages together'),
  has_more: booleanField(IN_NODE, 'Whether there is a next page'),
  next_cursor: cursorField('Cursor of the next page; null on the last page').nullable,
  prev_cursor: cursorField('Cursor of the previous page; null on the first page').nullable,
  sort: textField(IN_NODE, 'Sort order of the list'),
});

/** Makes the model of a list page with these items. */
export function describePage(item: Model<Readonly<Record<string, ResponseField>>>): Model {
  return new Model(`${item.name}Page`, {
    data: objectListField(item, IN_NODE, 'The items of this page, in the order of the list'),
    pagination: objectField(Pagination),
  });
}

/** Schema of an id in a path. Any other text causes a 404, never a 400. */
export const ID = { type: 'integer', format: 'int64', minimum: 1, maximum: MAX_ID } as const;

export interface RequestBody {
  readonly required: true;
  readonly description?: string;
  readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

const LIST_FORMS = 'for several, repeat the parameter or separate the values by commas';

interface DescribedParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: unknown;
  readonly style?: unknown;
  readonly explode?: unknown;
  readonly deprecated?: unknown;
  readonly schema: JsonSchema;
}

/** Describes a query's parameters. Those of views are optional without defaults, since other views may reject them. */
export function describeParameters(query: QueryClass | QueryVariants): DescribedParameter[] {
  if (typeof query !== 'function') return parametersOfViews(query);
  const defaults = new query() as Record<string, unknown>;
  return Array.from(propertiesOf(query), ([name, { schema, required }]) => {
    const { description, style, explode, deprecated, ...rules } = schema;
    return {
      name,
      in: 'query',
      required: required ?? true,
      description: style === undefined ? description : `${String(description)}; ${LIST_FORMS}`,
      style,
      explode,
      deprecated,
      schema: { ...rules, default: defaults[name] },
    };
  });
}

function parametersOfViews({ by, description, absent, values }: QueryVariants): DescribedParameter[] {
  const all = new Map<string, DescribedParameter>();
  for (const one of [absent, ...Object.values(values)].flatMap((view) => describeParameters(view.query))) {
    // A name has the same meaning in each view; only the accepted values differ.
    const words = [all.get(one.name)?.schema.enum ?? [], one.schema.enum ?? []].flat();
    const { default: _, ...rules } = one.schema;
    const schema = words.length > 0 ? { ...rules, enum: [...new Set(words)] } : rules;
    all.set(one.name, { ...one, required: false, schema });
  }
  const action = { type: 'string', enum: Object.keys(values) };
  return [{ name: by, in: 'query', required: false, description, schema: action }, ...all.values()];
}

/** Facts from a route's decorators, for the OpenAPI documents. */
export interface Operation {
  readonly summary?: string;
  readonly description?: string | undefined;
  readonly response?: JsonSchema;
  /** Parameters in the path and in headers; a class declares the query's parameters. */
  readonly parameters: readonly DescribedParameter[];
  readonly body?: RequestBody;
  /** Codes of possible problems, except codes that follow from the route's access and query. */
  readonly problems: readonly ProblemCode[];
  readonly deprecation?: ReturnType<typeof deprecation> | undefined;
}

const OPERATION = 'http:operation';

/** Returns the facts from the handler's decorators. */
export function describeOperation(handler: object): Operation {
  const said = Reflect.getMetadata(OPERATION, handler) as Operation | undefined;
  return said ?? { parameters: [], problems: [] };
}

/** Adds facts to a route's documentation. */
export const Documents =
  (part: Partial<Operation>): MethodDecorator =>
  (_controller, _name, { value: handler }) => {
    const said = describeOperation(handler as object);
    const parameters = [...said.parameters, ...(part.parameters ?? [])];
    const problems = [...said.problems, ...(part.problems ?? [])];
    Reflect.defineMetadata(OPERATION, { ...said, ...part, parameters, problems }, handler as object);
  };

/** Documents a route: a summary, a description in sentences, and its response on success. */
export const RespondsWith = (summary: string, answer: Model | JsonSchema, description?: string) =>
  Documents({ summary, description, response: answer instanceof Model ? refTo(answer) : answer });

/** Documents a route that responds with a page of items. */
export const RespondsWithPage = (
  summary: string,
  item: Model<Readonly<Record<string, ResponseField>>>,
  description?: string,
) => RespondsWith(summary, describePage(item), description);

/** Documents a parameter in the route's path. */
export const PathParameter = (name: string, description: string, schema: JsonSchema) =>
  Documents({ parameters: [{ name, required: true, in: 'path', description, schema }] });

/** Documents an optional request header. @param rules further JSON Schema of its text */
export const RequestHeader = (name: string, description: string, rules: JsonSchema = {}) =>
  Documents({
    parameters: [{ name, in: 'header', required: false, schema: { type: 'string', ...rules }, description }],
  });

/** Declares possible problems of a route, except problems that follow from its access and query. */
export const RespondsWithProblems = (...problems: readonly ProblemCode[]) => Documents({ problems });

/** Marks a route as deprecated; `sunset` is at least 12 months after `since`. */
export const DeprecatedRoute = (since: string, sunset: string) =>
  Documents({ deprecation: deprecation(since, sunset) });

/** Makes `Deprecation` (RFC 9745) and `Sunset` (RFC 8594) with the earliest dates of the deprecated route, parameters and fields. */
export function deprecationHeaders(handler: object, query: QueryClass | QueryVariants): [string, string][] {
  const operation = describeOperation(handler);
  const all = deprecationsIn([operation, describeParameters(query), schemasUsedBy(operation)]);
  if (all.length === 0) return [];
  const earliest = (dates: readonly Date[]) => new Date(Math.min(...dates.map(Number)));
  return [
    ['Deprecation', `@${earliest(all.map(({ since }) => since)).getTime() / 1000}`],
    ['Sunset', earliest(all.map(({ sunset }) => sunset)).toUTCString()],
  ];
}
