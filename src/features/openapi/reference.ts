import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';

/** JSON as the OpenAPI document holds it. */
type Json = Record<string, unknown>;

/** What the page at /docs shows, endpoint by endpoint. */
export interface Endpoint {
  /** Its anchor on the page. */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  /** null: any credential; undefined: none. */
  readonly scope: string | null | undefined;
  readonly parameters: readonly Field[];
  /** Where one parameter decides which others there are. */
  readonly variants: readonly Variant[];
  readonly body: readonly Field[];
  readonly answers: readonly { readonly title: string; readonly fields: readonly Field[] }[];
  readonly errors: readonly { readonly status: string; readonly codes: readonly string[] }[];
  readonly curl: string;
}

/** A parameter, or a key of a body. */
export interface Field {
  /** Keys that lead to it, each with its dot: `organizer.`; empty at the top. */
  readonly parent: string;
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  /** `1 to 100`, `at most 500 characters`; empty where there is none worth a word. */
  readonly limits: string;
  readonly required: boolean;
  /** Where a parameter stands: path, query or header. */
  readonly place?: string;
  readonly description: string;
  readonly allowed: readonly string[];
  readonly default?: string;
}

export interface Variant {
  /** Of the deciding parameter; undefined: it is absent. */
  readonly value: string | undefined;
  readonly parameters: readonly { readonly name: string; readonly allowed: readonly string[] }[];
}

/** Every endpoint of an OpenAPI 3.1 document: those that need a scope first, those that need no credential last. */
export function endpointsOf(document: Json): Endpoint[] {
  const { paths, servers } = document as {
    paths: Record<string, Record<string, Json>>;
    servers: [{ url: string }];
  };
  const schemas = (document.components as { schemas: Record<string, Json> }).schemas;
  const rank = ({ scope }: Endpoint) => (scope === undefined ? 2 : scope === null ? 1 : 0);
  return Object.entries(paths)
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) =>
        endpointOf(method.toUpperCase(), path, operation, schemas, servers[0].url),
      ),
    )
    .toSorted((one, other) => rank(one) - rank(other));
}

function endpointOf(
  method: string,
  path: string,
  operation: Json,
  schemas: Record<string, Json>,
  server: string,
): Endpoint {
  const body = schemaOf(operation.requestBody as Json | undefined);
  const responses = operation.responses as Record<string, Json>;
  const scope = operation['x-required-scope'] as string | null | undefined;
  return {
    id: `${method}-${path.replace('/api/public/', '')}`
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/-$/, ''),
    method,
    path,
    summary: operation.summary as string,
    scope,
    parameters: (operation.parameters as Json[]).map((parameter) => parameterOf(parameter)),
    variants: (operation['x-variants'] as Variant[] | undefined) ?? [],
    body: body ? fieldsOf(body, schemas) : [],
    answers: answersOf(schemaOf(responses['200'])!, schemas),
    errors: Object.entries(responses)
      .filter(([status]) => Number(status) >= 400)
      .map(([status, response]) => ({ status, codes: codesOf(response) })),
    curl: curlOf(
      method,
      server + path.replace(/\{\w+\}/g, pathExample),
      scope,
      body && example(body, schemas),
    ),
  };
}

function schemaOf(content: Json | undefined): Json | undefined {
  const types = content?.content as Record<string, { schema: Json }> | undefined;
  return types?.['application/json']?.schema;
}

function codesOf(response: Json): string[] {
  const types = response.content as Record<
    string,
    { schema: { allOf: [Json, { properties: { code: { enum: string[] } } }] } }
  >;
  return types['application/problem+json']!.schema.allOf[1].properties.code.enum;
}

function parameterOf({ name, in: place, required, description, schema }: Json): Field {
  return {
    ...fieldOf('', name as string, schema as Json, description as string),
    required: required === true,
    place: place as string,
  };
}

/** One answer, or one for each form that it can have. */
function answersOf(schema: Json, schemas: Record<string, Json>): Endpoint['answers'] {
  const forms = (schema.oneOf as Json[] | undefined) ?? [schema];
  return forms.map((form) => ({ title: titleOf(form), fields: fieldsOf(form, schemas) }));
}

function titleOf(schema: Json): string {
  const item = (schema.properties as { data?: { items?: Json } } | undefined)?.data?.items;
  if (item) return `list of ${titleOf(item)}s`;
  const name = (schema.$ref as string | undefined)?.split('/').at(-1) ?? 'Object';
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}

/** Every key of an object with those of the objects in it; the pagination of lists is described once, elsewhere. */
function fieldsOf(schema: Json, schemas: Record<string, Json>, parent = ''): Field[] {
  const object = resolve(schema, schemas);
  const required = (object.required as string[] | undefined) ?? [];
  return Object.entries((object.properties as Record<string, Json> | undefined) ?? {}).flatMap(
    ([name, property]) => {
      const field = { ...fieldOf(parent, name, property), required: required.includes(name) };
      if (field.type === 'pagination') return [field];
      const inner = resolve(property, schemas);
      const items = inner.type === 'array' ? (inner.items as Json) : undefined;
      const path = `${parent}${name}${items ? '[]' : ''}.`;
      return [field, ...fieldsOf(items ?? inner, schemas, path)];
    },
  );
}

/** The schema itself, or the one that it points to, null aside. */
function resolve(schema: Json, schemas: Record<string, Json>): Json {
  const wrapped = (schema.allOf ?? schema.anyOf) as Json[] | undefined;
  if (wrapped) return resolve(wrapped[0]!, schemas);
  return schema.$ref ? schemas[(schema.$ref as string).split('/').at(-1)!]! : schema;
}

function fieldOf(parent: string, name: string, schema: Json, description?: string): Field {
  const types = [schema.type ?? []].flat() as string[];
  const alternatives = (schema.anyOf ?? []) as Json[];
  const items = schema.items as Json | undefined;
  const fallback = schema.default as string | number | undefined;
  return {
    parent,
    name,
    type: typeOf(schema),
    nullable: types.includes('null') || alternatives.some((alternative) => alternative.type === 'null'),
    required: false,
    limits: limitsOf(schema),
    description: description ?? (schema.description as string | undefined) ?? '',
    allowed: ((schema.enum ?? items?.enum ?? []) as (string | null)[]).filter(
      (value) => value !== null,
    ) as string[],
    ...(fallback === undefined ? {} : { default: String(fallback) }),
  };
}

function typeOf(schema: Json): string {
  const reference = [schema, ...((schema.anyOf ?? schema.allOf ?? []) as Json[])].find(({ $ref }) => $ref);
  if (reference) {
    const name = titleOf(reference);
    return name === 'pagination' ? name : 'object';
  }
  const type = ([schema.type].flat() as string[]).find((name) => name !== 'null')!;
  if (type === 'array') return `list of ${typeOf(schema.items as Json)}s`;
  if (schema.format === 'uri') return 'URL';
  if (schema.pattern === TIMESTAMP_PATTERN || Array.isArray(schema.examples)) return 'time';
  return type;
}

/** One bound alone is what anybody expects: an id is positive, a count is not negative. */
function limitsOf(schema: Json): string {
  const { minimum, maximum, minLength, maxLength } = schema as Record<string, number | undefined>;
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minLength !== undefined) return `${minLength} to ${maxLength} characters`;
  return maxLength === undefined ? '' : `at most ${maxLength} characters`;
}

/** Body with the first key that has an example. */
function example(schema: Json, schemas: Record<string, Json>): string {
  const properties = resolve(schema, schemas).properties as Record<string, Json>;
  const [name, { example: value }] = Object.entries(properties).find(
    ([, property]) => property.example !== undefined,
  )!;
  return JSON.stringify({ [name]: value });
}

function pathExample(parameter: string): string {
  return parameter === '{code}' ? 'validation_failed' : '1';
}

function curlOf(
  method: string,
  url: string,
  scope: string | null | undefined,
  body: string | undefined,
): string {
  const parts = ['curl'];
  if (method !== 'GET') parts.push(`-X ${method}`);
  if (scope !== undefined) parts.push('-H "X-API-Key: $KEY"');
  if (body !== undefined) parts.push(`-H 'Content-Type: application/json' -d '${body}'`);
  return `${parts.join(' ')} ${url}`;
}
