/** JSON Schema of the classes of requests and responses (OpenAPI 3.1 uses JSON Schema 2020-12), collected by their decorators. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A class whose properties are described. */
export type Model<Instance extends object = object> = new () => Instance;

interface Property {
  readonly schema: JsonSchema;
  readonly required: boolean;
}

const PROPERTIES = 'http:properties';
/** The classes of the OpenAPI documents, by the names of their schemas. */
const named = new Map<string, { readonly model: Model; readonly description: string | undefined }>();
const names = new Map<Model, string>();

/** Gives the class a schema of that name in the OpenAPI documents. */
export const Schema =
  (name: string, description?: string): ClassDecorator =>
  (model) => {
    named.set(name, { model: model as never, description });
    names.set(model as never, name);
  };

/** Describes a property of the class. */
export const Described =
  (schema: JsonSchema, { required = true } = {}): PropertyDecorator =>
  (target, name) => {
    const properties = new Map(propertiesIn(target));
    Reflect.defineMetadata(PROPERTIES, properties.set(name as string, { schema, required }), target);
  };

/** The described properties of the class and of those that it extends, in the order in which they are declared. */
export function propertiesOf(model: Model): ReadonlyMap<string, Property> {
  return propertiesIn(model.prototype as object);
}

function propertiesIn(prototype: object): ReadonlyMap<string, Property> {
  return (Reflect.getMetadata(PROPERTIES, prototype) ?? new Map()) as ReadonlyMap<string, Property>;
}

/** Makes a schema that null satisfies, too. */
export function nullable({ type, enum: words, ...schema }: JsonSchema): JsonSchema {
  if (type === undefined) return { anyOf: [schema, { type: 'null' }] };
  return { type: [type, 'null'], ...(words ? { enum: [...(words as unknown[]), null] } : {}), ...schema };
}

const SCHEMAS = '#/components/schemas/';

/** Makes a reference to the schema of the class. @throws Error for a class without a {@link Schema} */
export function refTo(model: Model): { readonly $ref: string } {
  const name = names.get(model);
  if (name === undefined) throw new Error(`${model.name} has no name in the OpenAPI documents`);
  return { $ref: SCHEMAS + name };
}

/** Makes the schemas of all classes that `part` of a document refers to, by their names; each behind those that it refers to itself. */
export function schemasUsedBy(
  part: unknown,
  schemas = new Map<string, JsonSchema>(),
): Record<string, JsonSchema> {
  for (const [, name] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (schemas.has(name!) || !named.has(name!)) continue;
    const schema = schemaNamed(name!);
    schemasUsedBy(schema, schemas);
    schemas.set(name!, schema);
  }
  return Object.fromEntries(schemas);
}

function schemaNamed(name: string): JsonSchema {
  const { model, description } = named.get(name)!;
  const properties = [...propertiesOf(model)];
  const required = properties.filter(([, property]) => property.required).map(([property]) => property);
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(properties.map(([property, { schema }]) => [property, refAlone(schema)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

/** Older tools ignore whatever stands beside a `$ref`. */
function refAlone({ $ref, ...others }: JsonSchema): JsonSchema {
  if ($ref === undefined) return others;
  return Object.keys(others).length === 0 ? { $ref } : { ...others, allOf: [{ $ref }] };
}
