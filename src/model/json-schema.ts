import {
  CONNECTION_SOURCES,
  CONNECTION_STATUSES,
  EVENT_ROLES,
  EVENT_STATUSES,
  EVENT_VISIBILITIES,
  MAX_ID,
  RARITIES,
  RSVP_STATUSES,
} from '../values/vocabulary.js';
import { TIMESTAMP_PATTERN } from '../values/timestamps.js';
import type { FieldType } from './field.js';

/** A JSON Schema (version 2020-12, as in OpenAPI 3.1). */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Property {
  readonly schema: JsonSchema;
  /** Default: true. */
  readonly required?: boolean;
}

const SCHEMAS = '#/components/schemas/';

const models = new Map<string, Model>();

/** An object of a request or response: its name in the OpenAPI documents, and its ordered properties. */
export class Model<
  Properties extends Readonly<Record<string, Property>> = Readonly<Record<string, Property>>,
> {
  constructor(
    readonly name: string,
    readonly properties: Properties,
    readonly description?: string,
  ) {
    models.set(name, this);
  }
}

const words = new Map<string, readonly string[]>();

/** Names an enum, so that generated clients have one type for all its uses. */
export function nameWords<Words extends readonly string[]>(name: string, list: Words): Words {
  words.set(name, list);
  return list;
}
nameWords('EventStatus', EVENT_STATUSES);
nameWords('EventVisibility', EVENT_VISIBILITIES);
nameWords('EventRole', EVENT_ROLES);
nameWords('RsvpStatus', RSVP_STATUSES);
nameWords('ConnectionStatus', CONNECTION_STATUSES);
nameWords('ConnectionSource', CONNECTION_SOURCES);
nameWords('Rarity', RARITIES);

/** Makes the schema of an enum: a reference if the enum has a name. */
export function wordOf(list: readonly string[]): JsonSchema {
  const [name] = [...words].find(([, of]) => of === list) ?? [];
  return name === undefined ? { type: 'string', enum: [...list] } : { $ref: SCHEMAS + name };
}

/** Minimum number of months from a deprecation to its end (docs/api-contract.md §1). */
const MONTHS_OF_NOTICE = 12;

/** Makes the keywords of a deprecation. @param since a date in UTC, such as `2027-01-31` @throws RangeError if the end is too early */
export function deprecation(since: string, sunset: string) {
  const earliest = new Date(since);
  earliest.setUTCMonth(earliest.getUTCMonth() + MONTHS_OF_NOTICE);
  if (!(new Date(sunset) >= earliest))
    throw new RangeError(`The end ${sunset} must be at least ${MONTHS_OF_NOTICE} months after ${since}.`);
  return { deprecated: true, 'x-deprecated-since': since, 'x-sunset': sunset } as const;
}

/** Finds the dates of all deprecations in `part` of a document. */
export function deprecationsIn(part: unknown): { readonly since: Date; readonly sunset: Date }[] {
  return Array.from(
    JSON.stringify(part).matchAll(/"x-deprecated-since":"([^"]+)","x-sunset":"([^"]+)"/g),
    ([, since, sunset]) => ({ since: new Date(since!), sunset: new Date(sunset!) }),
  );
}

const PROPERTIES = 'http:properties';

/** Describes a property of a query or body class. */
export const Described =
  (schema: JsonSchema, { required = true }: { required?: boolean | undefined } = {}): PropertyDecorator =>
  (target, name) => {
    const properties = new Map(propertiesIn(target));
    Reflect.defineMetadata(PROPERTIES, properties.set(name as string, { schema, required }), target);
  };

/** Returns the described properties of the class and its superclasses, in declaration order. */
export function propertiesOf(query: new () => object): ReadonlyMap<string, Property> {
  return propertiesIn(query.prototype as object);
}

/** Like {@link propertiesOf}, for the class's prototype, which decorators receive. */
export function propertiesIn(prototype: object): ReadonlyMap<string, Property> {
  return (Reflect.getMetadata(PROPERTIES, prototype) ?? new Map()) as ReadonlyMap<string, Property>;
}

/** Cursors are base64url. */
export const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

/** Makes the schema of an integer, with its size for generated clients. */
export function integer(maximum = Number.MAX_SAFE_INTEGER) {
  return { type: 'integer', format: maximum < 2 ** 31 ? 'int32' : 'int64' } as const;
}

/** Makes the schema of a response field, without a length limit for texts. */
export function returned(type: FieldType): JsonSchema {
  if (type.kind === 'integer') return { ...integer(), minimum: type.minimum };
  if (type.kind === 'number')
    return { type: 'number', format: 'double', minimum: type.minimum, maximum: type.maximum };
  if (type.kind === 'enum') return wordOf(type.words);
  if (type.kind === 'text')
    return { type: 'string', ...(type.pattern !== undefined && { pattern: type.pattern }) };
  const schemas = {
    id: { type: 'integer', format: 'int64', minimum: 1, maximum: MAX_ID },
    boolean: { type: 'boolean' },
    timestamp: { type: 'string', pattern: TIMESTAMP_PATTERN },
    texts: { type: 'array', items: { type: 'string' } },
  };
  return schemas[type.kind];
}

/** Makes a schema that also allows null. */
export function nullable({ $ref, type, enum: words, ...schema }: JsonSchema): JsonSchema {
  if ($ref !== undefined) return { anyOf: [{ $ref }, { type: 'null' }], ...schema };
  return { type: [type, 'null'], ...(words ? { enum: [...(words as unknown[]), null] } : {}), ...schema };
}

/** Makes a reference to the schema of the model. */
export function refTo({ name }: Model): { readonly $ref: string } {
  return { $ref: SCHEMAS + name };
}

/** Makes the schemas that `part` of a document references, also indirectly, by name. */
export function schemasUsedBy(
  part: unknown,
  schemas = new Map<string, JsonSchema>(),
): Record<string, JsonSchema> {
  for (const [, name] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (schemas.has(name!) || !(models.has(name!) || words.has(name!))) continue;
    const schema = schemaNamed(name!);
    schemasUsedBy(schema, schemas);
    schemas.set(name!, schema);
  }
  return Object.fromEntries(schemas);
}

/** Makes the schema of the model or enum with this name. */
export function schemaNamed(name: string): JsonSchema {
  if (words.has(name)) return { type: 'string', enum: words.get(name) };
  const { description, properties: described } = models.get(name)!;
  const properties = Object.entries(described);
  const required = properties
    .filter(([, property]) => property.required !== false)
    .map(([property]) => property);
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(properties.map(([property, { schema }]) => [property, refAlone(schema)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

/** Moves a `$ref` with other keys into `allOf`: older tools ignore keys next to a `$ref`. */
function refAlone({ $ref, ...others }: JsonSchema): JsonSchema {
  if ($ref === undefined) return others;
  return Object.keys(others).length === 0 ? { $ref } : { ...others, allOf: [{ $ref }] };
}
