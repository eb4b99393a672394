import { PROBLEMS, type ProblemCode } from '../http/output/problems.js';
import { TIMESTAMP_PATTERN } from '../values/timestamps.js';
import { MAX_ID } from '../values/vocabulary.js';

type Json = Record<string, unknown>;

/** Schemas by name: the document's schemas, or the schemas of an object's keys. */
type Schemas = Record<string, Json>;

/** Lists an OpenAPI document's operations: first those that require a scope, then those with any credential, then public ones. */
export function listEndpoints(document: Json): Endpoint[] {
  const { paths, components } = withWords(document) as {
    paths: Record<string, Record<string, Json>>;
    components: { schemas: Schemas };
  };
  const { schemas } = components;
  const rank = ({ scope }: Endpoint) => (scope === undefined ? 2 : scope === null ? 1 : 0);
  return Object.entries(paths)
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) =>
        describeCall(method.toUpperCase(), path, operation, schemas),
      ),
    )
    .toSorted((one, other) => rank(one) - rank(other));
}

/** Inlines referenced enumerations. */
function withWords(document: Json): Json {
  const { schemas } = document.components as { schemas: Schemas };
  const inPlace = (_: string, value: unknown): unknown => {
    const { $ref, anyOf, allOf, ...others } = (value ?? {}) as Json &
      Record<'anyOf' | 'allOf', Json[] | undefined>;
    const reference = ($ref ?? anyOf?.[0]?.$ref ?? allOf?.[0]?.$ref) as string | undefined;
    const words = schemas[reference?.split('/').at(-1) ?? ''];
    if (!words?.enum) return value;
    return { ...others, ...words, type: anyOf ? ['string', 'null'] : 'string' };
  };
  return JSON.parse(JSON.stringify(document, inPlace)) as Json;
}

export type Endpoint = ReturnType<typeof describeCall>;

function describeCall(method: string, path: string, operation: Json, schemas: Schemas) {
  const body = schemaOf(operation.requestBody as Json | undefined);
  const schema = schemaOf((operation.responses as Schemas)['200'])!;
  const { operationId: name, summary, description = '' } = operation as Record<string, string>;
  const codes = operation['x-problems'] as ProblemCode[];
  return {
    /** The `operationId`, also the operation's anchor on the page. */
    name: name!,
    summary: summary!,
    description,
    tag: (operation.tags as [string])[0],
    method,
    path,
    /** The required scope; null: any credential; undefined: no credential. */
    scope: operation['x-required-scope'] as string | null | undefined,
    body: body ? describeFields(body, schemas) : [],
    parameters: (operation.parameters as Json[]).map(describeParameter),
    /** Empty if the response has alternatives: each has a separate operation. */
    answer: schema.anyOf ? [] : describeFields(schema, schemas),
    /** Title of the response, such as `list of events`. */
    answerTitle: titleOf(schema, schemas),
    errors: [...Map.groupBy(codes, (code) => PROBLEMS.get(code)!.status)]
      .map(([status, of]) => ({ status: String(status), codes: of }))
      .toSorted((one, other) => one.status.localeCompare(other.status)),
  };
}

function schemaOf(content: Json | undefined): Json | undefined {
  const types = content?.content as Record<string, { schema: Json }> | undefined;
  return (types?.['application/json'] ?? types?.['application/x-ndjson'])?.schema;
}

function describeParameter({ name, in: place, required, description, schema }: Json) {
  const field = describeField('', name as string, { ...(schema as Json), description });
  /** `place`: path, query or header. */
  return { ...field, required: required === true, place: place as string };
}

function titleOf(schema: Json, schemas: Schemas): string {
  const page = resolve(schema, schemas).properties as
    { data?: { items?: Json }; pagination?: Json } | undefined;
  if (schema.anyOf) return (schema.anyOf as Json[]).map((one) => titleOf(one, schemas)).join(', or ');
  if (page?.pagination) return `list of ${titleOf(page.data!.items!, schemas)}s`;
  return nameOf(schema);
}

function nameOf(schema: Json): string {
  const name = (schema.$ref as string | undefined)?.split('/').at(-1) ?? 'Object';
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}

/** Lists an object's keys and the keys of nested objects, except the keys of `pagination`, which the page describes elsewhere. */
function describeFields(schema: Json, schemas: Schemas, parent = ''): Field[] {
  const { properties = {} } = resolve(schema, schemas) as { properties?: Schemas };
  return Object.entries(properties).flatMap(([name, property]) => {
    const field = describeField(parent, name, property);
    if (field.type === 'pagination') return [field];
    const inner = resolve(property, schemas);
    const items = inner.items as Json | undefined;
    const path = `${parent}${name}${items ? '[]' : ''}.`;
    return [field, ...describeFields(items ?? inner, schemas, path)];
  });
}

/** Returns the schema, or the schema that it references; of alternatives, only the first. */
function resolve(schema: Json, schemas: Schemas): Json {
  const wrapped = (schema.allOf ?? schema.anyOf) as Json[] | undefined;
  if (wrapped) return resolve(wrapped[0]!, schemas);
  return schema.$ref ? schemas[(schema.$ref as string).split('/').at(-1)!]! : schema;
}

type Field = ReturnType<typeof describeField>;

function describeField(parent: string, name: string, schema: Json) {
  const alternatives = (schema.anyOf ?? []) as Json[];
  const items = schema.items as Json | undefined;
  return {
    /** Parent keys, each with a dot, such as `organizer.`; empty at the top. */
    parent,
    name,
    type: describeType(schema),
    nullable: [schema, ...alternatives].flatMap(({ type }) => type).includes('null'),
    /** Limits such as `1 to 100` or `at most 500 characters`; may be empty. */
    limits: describeLimits(schema),
    description: schema.description ?? '',
    allowed: ((schema.enum ?? items?.enum ?? []) as (string | null)[]).filter((word) => word !== null),
    default: schema.default,
    example: schema.example ?? (schema.examples as unknown[] | undefined)?.[0],
  };
}

function describeType(schema: Json): string {
  const reference = [schema, ...((schema.anyOf ?? schema.allOf ?? []) as Json[])].find(({ $ref }) => $ref);
  if (reference) {
    return nameOf(reference) === 'pagination' ? 'pagination' : 'object';
  }
  const type = ([schema.type].flat() as string[]).find((name) => name !== 'null')!;
  if (type === 'array') return `list of ${describeType(schema.items as Json)}s`;
  if (schema.format === 'uri') return 'URL';
  if (schema.pattern === TIMESTAMP_PATTERN || isMoment(schema)) return 'time';
  return type;
}

/** Recognizes time parameters, which list their formats as examples. */
function isMoment({ type, enum: words, examples }: Json): boolean {
  return type === 'string' && words === undefined && Array.isArray(examples);
}

/** Omits obvious limits: single bounds of numbers, and the largest id. */
function describeLimits(schema: Json): string {
  const { minimum, maximum, minLength, maxLength } = schema as Record<string, number | undefined>;
  if (minimum !== undefined && maximum !== undefined && maximum < MAX_ID) return `${minimum} to ${maximum}`;
  if (maxLength === undefined) return '';
  return minLength === undefined
    ? `at most ${maxLength} characters`
    : `${minLength} to ${maxLength} characters`;
}
