// Makes Node itself load the tests and the code under test: `src/` as built into `dist/`, once for all files of a worker; the files
// of `test/` and the `*.spec.ts` again for each test file, so that no file sees the state of another.
import { existsSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transformSync } from '@swc/core';
import { keepCompiled } from '../../bin/compile-cache.mjs';

const root = join(import.meta.dirname, '../..');
const tests = ['test/', 'compat/'].map((folder) => pathToFileURL(join(root, folder)).href);
const built = /^(src|migrations)\//;
const globals = Symbol.for('test globals');

let runs = 0;
const scripts = new Map();

keepCompiled();
process.setSourceMapsEnabled(true);
registerHooks({ resolve, load });

/** Loads a test file and the test files that it imports. @param {object} provided the file's `@jest/globals` */
export async function importTest(path, provided) {
  runs++;
  globalThis[globals] = provided;
  await import(`${pathToFileURL(path).href}?run=${runs}`);
}

function resolve(specifier, context, next) {
  const [parent, run] = context.parentURL?.split('?run=') ?? [];
  if (run === undefined) return next(specifier, context);
  if (specifier === '@jest/globals') return { url: `test-globals:${run}`, shortCircuit: true };
  if (!specifier.startsWith('.')) return next(specifier, context);
  const url = new URL(specifier, parent).href;
  const script = url.replace(/\.js$/, '.ts');
  const isTest = tests.some((folder) => script.startsWith(folder));
  if (isTest && existsSync(fileURLToPath(script))) return { url: `${script}?run=${run}`, shortCircuit: true };
  const path = fileURLToPath(url).slice(root.length + 1);
  if (built.test(path)) return next(pathToFileURL(join(root, 'dist', path)).href, context);
  return next(url, context);
}

function load(url, context, next) {
  if (url.startsWith('test-globals:')) {
    const names = Object.keys(globalThis[globals]).filter((name) => name !== 'default');
    const source = `export const { ${names.join(', ')} } = globalThis[Symbol.for('test globals')];`;
    return { format: 'module', source, shortCircuit: true };
  }
  const path = url.startsWith('file:') ? fileURLToPath(url) : '';
  if (!path.endsWith('.ts') || path.includes('node_modules')) return next(url, context);
  if (!scripts.has(path)) scripts.set(path, strip(path));
  return { format: 'module', source: scripts.get(path), shortCircuit: true };
}

function strip(path) {
  return transformSync(readFileSync(path, 'utf8'), { cwd: root, filename: path, sourceMaps: 'inline' }).code;
}
