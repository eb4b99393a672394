// Generates the API's types from its OpenAPI document: `npm run types -- [URL]` writes src/schema.ts. A test checks that src/schema.ts is current.

/**
 * @param {object} document OpenAPI 3.1, as the server returns it
 * @returns {string} TypeScript: an interface for each schema, and one for the query of each list
 */
export function typesOf({ components, paths }) {
  const parts = Object.entries(components.schemas).map(([name, schema]) => declaration(name, schema));
  for (const [path, { get }] of Object.entries(paths)) {
    const query = get?.parameters?.filter((parameter) => parameter.in === 'query') ?? [];
    if (query.length === 0) continue;
    // `/api/public/achievements/all`: AllAchievements
    const names = path.split('/').slice(3).toReversed();
    const name = names.map((word) => word.replace(/^./, (letter) => letter.toUpperCase())).join('');
    parts.push(`export interface ${name}Query {\n${query.map(parameter).join('')}}\n`);
  }
  return ['// Made by `npm run types` from the OpenAPI document.\n', ...parts].join('\n');
}

function declaration(name, schema) {
  const { properties, description } = schema;
  if (!properties) return `export type ${name} = ${typeOf(schema)};\n`;
  const comments = Object.values(properties).map((property) => comment(property, '  '));
  const fields = fieldsOf(schema).map((field, i) => `${comments[i]}  ${field};\n`);
  return `${comment({ description }, '')}export interface ${name} {\n${fields.join('')}}\n`;
}

function fieldsOf({ properties, required = [] }) {
  return Object.entries(properties).map(
    ([key, value]) => `readonly ${key}${required.includes(key) ? '' : '?'}: ${typeOf(value)}`,
  );
}

function parameter({ name, schema, description, required }) {
  const said = { description, default: schema.default };
  return `${comment(said, '  ')}  readonly ${name}${required ? '' : '?'}: ${typeOf(schema)} | undefined;\n`;
}

function comment({ description, example, default: fallback }, indent) {
  const said = [
    description,
    example === undefined ? undefined : `For example \`${example}\`.`,
    fallback === undefined ? undefined : `Default: \`${fallback}\`.`,
  ]
    .filter(Boolean)
    .map((sentence) => (/[.!?]$/.test(sentence) ? sentence : `${sentence}.`));
  return said.length === 0
    ? ''
    : `${indent}/** ${said.join(' ').replaceAll('*/', '* /').replace(/\s+/g, ' ')} */\n`;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const variants = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (variants) return variants.map(typeOf).join(schema.allOf ? ' & ' : ' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ');
  switch (schema.type) {
    case 'integer':
      return 'number';
    case 'array':
      return `readonly (${typeOf(schema.items)})[]`;
    case 'object':
      return schema.properties ? `{ ${fieldsOf(schema).join('; ')} }` : 'Readonly<Record<string, unknown>>';
    case undefined:
      return 'unknown';
    default:
      return schema.type;
  }
}

if (process.argv[1] === import.meta.filename) {
  const { writeFileSync } = await import('node:fs');
  const response = await fetch(process.argv[2] ?? 'http://localhost:3000/api/public/openapi.json');
  writeFileSync(new URL('./src/schema.ts', import.meta.url), typesOf(await response.json()));
}
