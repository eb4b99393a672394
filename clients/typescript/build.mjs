// `npm run build`: writes dist/ as ES modules and dist/cjs/ as CommonJS, both with types and source maps, in a second. `npm run check`
// checks the types.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import ts from 'typescript';

const ROOT = import.meta.dirname;
const NAMES = readdirSync(join(ROOT, 'src'));

/** @returns {Map<string, string>} path below dist/ → text */
export function built() {
  const files = new Map([['cjs/package.json', '{ "type": "commonjs" }\n']]);
  const types = declarations();
  for (const [folder, module] of [
    ['', 'ES2022'],
    ['cjs/', 'CommonJS'],
  ]) {
    const up = `../${folder && '../'}`;
    for (const [name, text] of types)
      files.set(folder + name, name.endsWith('.map') ? withSources(text, `${up}src/`) : text);
    for (const name of NAMES) {
      const script = scriptOf(name, { module, verbatimModuleSyntax: module === 'ES2022' });
      const path = folder + name.replace(/\.ts$/, '.js');
      files.set(path, script.outputText);
      files.set(`${path}.map`, withSources(script.sourceMapText, `${up}src/`));
    }
  }
  return files;
}

/** Compiles a source without comments: the type declarations contain them. */
function scriptOf(name, format) {
  const options = { ...format, removeComments: true, isolatedDeclarations: false };
  const found = ts.transpileModule(readFileSync(join(ROOT, 'src', name), 'utf8'), {
    fileName: name,
    compilerOptions: compilerOptions(options),
    reportDiagnostics: true,
  });
  refuse(found.diagnostics);
  return found;
}

/** Name → text. The sources declare all exported types explicitly, so this needs neither type checks nor browser types. */
function declarations() {
  const options = compilerOptions({
    lib: ['ES2022'],
    noCheck: true,
    noEmit: false,
    emitDeclarationOnly: true,
    outDir: 'dist',
    rootDir: 'src',
  });
  const program = ts.createProgram(
    NAMES.map((name) => join(ROOT, 'src', name)),
    options,
  );
  const files = new Map();
  refuse(program.emit(undefined, (path, text) => files.set(basename(path), text)).diagnostics);
  return files;
}

function compilerOptions(others) {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  return ts.convertCompilerOptionsFromJson({ ...config.compilerOptions, ...others }, ROOT).options;
}

function refuse([fault]) {
  if (fault) throw new Error(ts.formatDiagnostic(fault, ts.createCompilerHost({})));
}

/** A source map whose sources are in a folder. */
function withSources(map, folder) {
  const { sources, ...others } = JSON.parse(map);
  return JSON.stringify({ ...others, sources: sources.map((path) => folder + basename(path)) });
}

if (process.argv[1] === import.meta.filename) {
  const output = join(ROOT, 'dist');
  rmSync(output, { recursive: true, force: true });
  for (const [path, text] of built()) {
    mkdirSync(dirname(join(output, path)), { recursive: true });
    writeFileSync(join(output, path), text);
  }
}
