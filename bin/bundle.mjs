// Joins `dist/src` and its libraries into a few files in `dist/bundle`, which Node loads faster and with less memory.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { build } from 'esbuild';

const dist = join(import.meta.dirname, '../dist');
const TABLES = join(dist, 'src/database/schema/tables.js');
/** Entities and migrations, which tables.js finds by reading folders. */
const FOUND = { ENTITIES: ['src', /[./](?:entity|table)\.js$/], MIGRATIONS: ['migrations', /\.js$/] };

/** Lets a bundled module find the files next to its source. */
function keepPlace(path) {
  const place = relative(dist, path).split(sep).join('/');
  return readFileSync(path, 'utf8')
    .replaceAll('import.meta.url', `new URL('../${place}', import.meta.url).href`)
    .replaceAll('import.meta.dirname', `(import.meta.dirname + '/../${dirname(place)}')`);
}

/** Lists the entities and migrations, which tables.js otherwise finds by reading folders. */
function nameTables() {
  const lists = Object.entries(FOUND).map(([name, [folder, named]]) => {
    const files = readdirSync(join(dist, folder), { recursive: true })
      .filter((file) => named.test(file))
      .toSorted((one, other) => (one < other ? -1 : 1));
    return {
      imports: files.map(
        (file, i) => `import * as ${name}${i} from ${JSON.stringify(join(dist, folder, file))};`,
      ),
      list: `export const ${name} = [${files.map((_, i) => `...classesOf(${name}${i})`).join(', ')}];`,
    };
  });
  const rest = readFileSync(TABLES, 'utf8').replaceAll(
    /export const (?:ENTITIES|MIGRATIONS) = await classesIn\([^)]*\);/g,
    '',
  );
  return `${lists.flatMap(({ imports }) => imports).join('\n')}
const classesOf = (module) => Object.values(module).filter((value) => typeof value === 'function');
${rest}
${lists.map(({ list }) => list).join('\n')}`;
}

/** @returns file name in `dist/bundle` → file */
export async function bundle() {
  const { outputFiles } = await build({
    entryPoints: {
      server: join(dist, 'src/main.js'),
      pua: join(dist, 'src/cli/main.js'),
      // For V8's cache: code that both load later.
      app: join(dist, 'src/app.js'),
      commands: join(dist, 'src/cli/database.js'),
    },
    write: false,
    outdir: join(dist, 'bundle'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'error',
    external: [
      '@node-rs/argon2',
      'bcrypt',
      // TypeORM requires pg, and src imports it: both must get the same module, which holds settings such as parseInt8.
      'pg',
      'pg-protocol',
      'pino', // it starts a thread from its own files
      'pino-pretty',
      '@electric-sql/*',
      // CommonJS that is loaded on demand: only Node finds its named exports.
      'nodemailer',
      'prom-client',
      'timezones-ical-library',
      '@nestjs/microservices',
      '@nestjs/websockets',
    ],
    // CommonJS libraries expect these variables.
    banner: {
      js: `import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);
const __dirname = import.meta.dirname, __filename = import.meta.filename;`,
    },
    plugins: [
      {
        name: 'places',
        setup: ({ onLoad }) => {
          onLoad({ filter: /[\\/]dist[\\/](?:src|migrations)[\\/].*\.js$/ }, ({ path }) => ({
            contents: path === TABLES ? nameTables() : keepPlace(path),
          }));
        },
      },
    ],
  });
  return new Map(outputFiles.map(({ path, contents }) => [relative(join(dist, 'bundle'), path), contents]));
}
