import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';
import { HIGHEST_ID } from '../../values/vocabulary.js';
import type { DescribedVariant } from './openapi-document.js';

/** JSON as the OpenAPI document holds it. */
type Json = Record<string, unknown>;

/** Schemas by name: of the document, or of an object's keys. */
type Schemas = Record<string, Json>;

/** Every call of an OpenAPI 3.1 document, in the order of the groups: those that need no credential last. */
export function endpointsOf(document: Json): Endpoint[] {
  const { paths } = document as { paths: Record<string, Record<string, Json>> };
  const { schemas } = document.components as { schemas: Schemas };
  const rank = ({ scope }: Endpoint) => (scope === undefined ? 2 : scope === null ? 1 : 0);
  return Object.entries(paths)
    .flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([method, operation]) =>
        callsOf(method.toUpperCase(), path, operation, schemas),
      ),
    )
    .toSorted((one, other) => rank(one) - rank(other));
}

/** A call, as the reference shows it: an operation of the document, or one variant of it. */
export type Endpoint = ReturnType<typeof callsOf>[number];

function callsOf(method: string, path: string, operation: Json, schemas: Schemas) {
  const body = schemaOf(operation.requestBody as Json | undefined);
  const responses = operation.responses as Schemas;
  const parameters = operation.parameters as Json[];
  const { operationId: name, summary, description = '' } = operation as Record<string, string>;
  const variants = operation['x-variants'] as DescribedVariant[] | undefined;
  const others = parameters.filter(({ in: place }) => place !== 'query');
  const calls = variants?.map((variant) => ({ ...variant, parameters: [...variant.parameters, ...others] }));
  const only = { name, by: '', summary, description, parameters, schema: schemaOf(responses['200'])! };
  return (calls ?? [only as DescribedVariant]).map(({ by, value, schema, ...call }) => ({
    /** With `name`: `operationId`, or the variant's name; also its anchor on the page. */
    ...call,
    /** The group that it belongs to. */
    tag: (operation.tags as [string])[0],
    method,
    path,
    /** null: any credential; undefined: none. */
    scope: operation['x-required-scope'] as string | null | undefined,
    body: body ? fieldsOf(body, schemas) : [],
    /** Of a variant: the parameter that decides, with its value. */
    fixed: (value === undefined ? {} : { [by]: value }) as Record<string, string>,
    parameters: call.parameters.map(parameterOf),
    answer: fieldsOf(schema, schemas),
    /** What the response is: `list of events`. */
    answerTitle: titleOf(schema),
    errors: Object.entries(responses)
      .filter(([status]) => Number(status) >= 400)
      .map(([status, response]) => ({
        status,
        codes: codesOf(response).filter((code) => canHave(code, call.parameters)),
      }))
      .filter(({ codes }) => codes.length > 0),
  }));
}

/** Whether a variant with these parameters can be answered so: the document says it of all variants together. */
function canHave(code: string, parameters: readonly Json[]): boolean {
  const names = parameters.map(({ name }) => name as string);
  if (code === 'invalid_cursor') return names.includes('cursor') || names.includes('after');
  if (code === 'missing_parameter')
    return parameters.some(({ in: place, required }) => place === 'query' && required === true);
  if (code.endsWith('_not_found')) return names.includes('id');
  return true;
}

function schemaOf(content: Json | undefined): Json | undefined {
  const types = content?.content as Record<string, { schema: Json }> | undefined;
  return (types?.['application/json'] ?? types?.['application/x-ndjson'])?.schema;
}

function codesOf(response: Json): string[] {
  const types = response.content as Record<
    string,
    { schema: { allOf: [Json, { properties: { code: { enum: string[] } } }] } }
  >;
  return types['application/problem+json']!.schema.allOf[1].properties.code.enum;
}

function parameterOf({ name, in: place, required, description, schema }: Json) {
  const field = fieldOf('', name as string, { ...(schema as Json), description });
  /** `place`, where it is sent: path, query or header. */
  return { ...field, required: required === true, place: place as string };
}

function titleOf(schema: Json): string {
  const item = (schema.properties as { data?: { items?: Json } } | undefined)?.data?.items;
  if (item) return `list of ${titleOf(item)}s`;
  const name = (schema.$ref as string | undefined)?.split('/').at(-1) ?? 'Object';
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
}

/** Every key of an object with those of the objects in it; the pagination of lists is described once, elsewhere. */
function fieldsOf(schema: Json, schemas: Schemas, parent = ''): Field[] {
  const { properties = {} } = resolve(schema, schemas) as { properties?: Schemas };
  return Object.entries(properties).flatMap(([name, property]) => {
    const field = fieldOf(parent, name, property);
    if (field.type === 'pagination') return [field];
    const inner = resolve(property, schemas);
    const items = inner.items as Json | undefined;
    const path = `${parent}${name}${items ? '[]' : ''}.`;
    return [field, ...fieldsOf(items ?? inner, schemas, path)];
  });
}

/** The schema itself, or the one that it points to, null aside. */
function resolve(schema: Json, schemas: Schemas): Json {
  const wrapped = (schema.allOf ?? schema.anyOf) as Json[] | undefined;
  if (wrapped) return resolve(wrapped[0]!, schemas);
  return schema.$ref ? schemas[(schema.$ref as string).split('/').at(-1)!]! : schema;
}

/** A parameter, or a key of a body. */
type Field = ReturnType<typeof fieldOf>;

function fieldOf(parent: string, name: string, schema: Json) {
  const alternatives = (schema.anyOf ?? []) as Json[];
  const items = schema.items as Json | undefined;
  return {
    /** Keys that lead to it, each with its dot: `organizer.`; empty at the top. */
    parent,
    name,
    type: typeOf(schema),
    nullable: [schema, ...alternatives].flatMap(({ type }) => type).includes('null'),
    /** `1 to 100`, `at most 500 characters`; empty if there is none worth mentioning. */
    limits: limitsOf(schema),
    description: schema.description ?? '',
    allowed: ((schema.enum ?? items?.enum ?? []) as (string | null)[]).filter((word) => word !== null),
    default: schema.default,
    example: schema.example ?? (schema.examples as unknown[] | undefined)?.[0],
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
  if (schema.pattern === TIMESTAMP_PATTERN || isMoment(schema)) return 'time';
  return type;
}

/** Parameters that are times accept several formats, and show them. */
function isMoment({ type, enum: words, examples }: Json): boolean {
  return type === 'string' && words === undefined && Array.isArray(examples);
}

/** A single bound is obvious, and so is the largest id: an id is positive, a count is not negative. */
function limitsOf(schema: Json): string {
  const { minimum, maximum, minLength, maxLength } = schema as Record<string, number | undefined>;
  if (minimum !== undefined && maximum !== undefined && maximum < HIGHEST_ID)
    return `${minimum} to ${maximum}`;
  if (maxLength === undefined) return '';
  return minLength === undefined
    ? `at most ${maxLength} characters`
    : `${minLength} to ${maxLength} characters`;
}
