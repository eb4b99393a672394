import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { thorough } from '../support/database.js';

const parse = (path: string) =>
  ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);

/** Exported functions of a file: their names and descriptions, without tags. */
function functionsOf(path: string): [string, string][] {
  const file = parse(path);
  const isExported = (node: ts.HasModifiers) =>
    node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
  const described = (node: ts.Node, name: string): [string, string] => {
    const comment = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).at(-1)?.comment;
    return [`${path}: ${name}`, ts.getTextOfJSDocComment(comment) ?? ''];
  };
  return file.statements.flatMap((statement): [string, string][] => {
    if (ts.isFunctionDeclaration(statement) && statement.body && isExported(statement))
      return [described(statement, statement.name!.text)];
    if (!ts.isVariableStatement(statement) || !isExported(statement)) return [];
    return statement.declarationList.declarations
      .filter(
        ({ initializer }) =>
          initializer && (ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer)),
      )
      .map(({ name }) => described(statement, name.getText()));
  });
}

/** Exported names of a file, including types; a value and its type with the same name count once. */
function exportsOf(path: string): string[] {
  const names = parse(path).statements.flatMap((statement) => {
    const { modifiers } = statement as ts.HasModifiers;
    if (modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) !== true) return [];
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.getText());
    const { name } = statement as ts.DeclarationStatement;
    return name ? [name.getText()] : [];
  });
  return [...new Set(names)];
}

/** Exported names with two meanings, and the reason. */
const TWICE: Readonly<Record<string, string>> = {
  Caller: 'of a credential, and of a place in the queue before it is known',
  Change: 'a row of the log of changes, and an item of sync',
  JsonSchema: 'the vocabulary of OpenAPI, and that of an imported record',
  boolean: 'a field, and a column without one',
  flag: 'a setting, and a field of an imported record',
  id: 'a field, and a field of an imported record',
  integer: 'a setting, a field, a column without one, and a schema',
  oneOf: 'as flag',
  url: 'as flag',
};

const MAX_FILES = 13;

const firstImportOf = (path: string) => /^import .*$/m.exec(readFileSync(path, 'utf8'))?.[0] ?? '';

const MAX_SQL_LENGTH = 140;

/** Lines of SQL, in templates and strings, that exceed the readable length. */
function longSqlOf(path: string): string[] {
  const file = parse(path);
  const lines = file.text.split('\n');
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (
      ts.isTemplateLiteral(node) &&
      /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|JOIN|CASE WHEN)\b/.test(node.getText())
    ) {
      const [first, last] = [node.getStart(), node.getEnd()].map(
        (at) => file.getLineAndCharacterOfPosition(at).line,
      );
      for (let line = first!; line <= last!; line++)
        if (lines[line]!.length > MAX_SQL_LENGTH) found.add(`${path}:${line + 1}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return [...found];
}

thorough.describe('the code', () => {
  const paths = globSync('src/**/*.ts').filter((path) => !path.endsWith('.spec.ts'));

  it('exports each name from one file only, except the listed names', () => {
    const files = Map.groupBy(
      paths.flatMap((path) => exportsOf(path).map((name) => ({ name, path }))),
      ({ name }) => name,
    );
    expect(files.size).toBeGreaterThan(800);
    const twice = [...files].filter(([, { length }]) => length > 1).map(([name]) => name);
    expect(twice.sort()).toEqual(Object.keys(TWICE).sort());
  });

  it('describes each exported function in text that begins and ends like a sentence', () => {
    const functions = paths.flatMap(functionsOf);
    expect(functions.length).toBeGreaterThan(250);
    const mute = functions.filter(([, text]) => !/^[A-Z`{4][^]{8,}[.:;?)\d]$/.test(text.trim()));
    expect(mute.map(([name]) => name)).toEqual([]);
  });

  it('exports only names that another file uses', () => {
    const files = globSync('{src,test,compat,bin,bench,examples,clients,migrations}/**/*.{ts,mjs,mts,eta}', {
      exclude: (name) => name === 'node_modules',
    });
    const users = new Map<string, Set<string>>();
    for (const path of files)
      for (const word of new Set(readFileSync(path, 'utf8').match(/\w+/g)))
        users.set(word, (users.get(word) ?? new Set()).add(path));
    expect(files.length).toBeGreaterThan(700);
    // The server loads entity files by name, so no file must import them.
    const names = paths
      .filter((path) => !/(\.entity|\/table)\.ts$/.test(path))
      .flatMap((path) => exportsOf(path).map((name) => ({ name, path })));
    expect(names.filter(({ name }) => users.get(name)!.size === 1)).toEqual([]);
  });

  it('has at most 13 files in a folder, not counting specs', () => {
    const files = globSync('src/**/*.*').filter((path) => !path.endsWith('.spec.ts'));
    const folders = Map.groupBy(files, (path) => dirname(path));
    expect(folders.size).toBeGreaterThan(40);
    const full = [...folders].filter(([, { length }]) => length > MAX_FILES).map(([folder]) => folder);
    expect(full).toEqual([]);
  });

  it('has no file with more than 400 lines', () => {
    expect(paths.filter((path) => readFileSync(path, 'utf8').split('\n').length > 401)).toEqual([]);
  });

  it('exports a service from each file that is named `.service.ts`', () => {
    const services = paths.filter((path) => path.endsWith('.service.ts'));
    expect(services.length).toBeGreaterThan(3);
    expect(
      services.filter((path) => !/^export class \w+Service\b/m.test(readFileSync(path, 'utf8'))),
    ).toEqual([]);
  });

  it('inserts audit events in one file only', () => {
    const writers = paths.filter((path) => /INSERT INTO auth_events/i.test(readFileSync(path, 'utf8')));
    expect(writers).toEqual(['src/audit/audit.ts']);
  });

  it('calls manager.transaction only below a comment that it bypasses dataSource.transaction', () => {
    const begun = paths.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .flatMap((line, index, lines) =>
          /\bmanager\.transaction\(/.test(line) &&
          !lines[index - 1]!.includes('// Bypasses dataSource.transaction')
            ? [`${path}: ${line.trim()}`]
            : [],
        ),
    );
    expect(begun).toEqual([]);
  });

  it('constructs no service in a command: the CLI’s module provides the services', () => {
    const services = [...readFileSync('src/cli/database.ts', 'utf8').matchAll(/^  (\w+),$/gm)].map(
      ([, name]) => name!,
    );
    expect(services).toContain('UsersService');
    const made = new RegExp(`new (${services.join('|')})\\(`);
    const commands = paths.filter((path) => path.startsWith('src/cli/'));
    expect(commands.filter((path) => made.test(readFileSync(path, 'utf8')))).toEqual([]);
  });

  it('constructs no PublicHttps: Nest provides one, whose limits and network rules all requests share', () => {
    expect(paths.filter((path) => /\bnew PublicHttps\(/.test(readFileSync(path, 'utf8')))).toEqual([]);
  });

  it('calls setInterval in two files only', () => {
    const repeating = paths.filter((path) => /\bsetInterval\(/.test(readFileSync(path, 'utf8')));
    expect(repeating).toEqual(['src/database/member-reads.ts', 'src/database/postgres/pipelined-reads.ts']);
  });

  it('has no “remove in” marker of the current or an earlier version', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    const markers = globSync(
      '{src,bin,schema,deploy,migrations,clients}/**/*.{ts,mjs,sql,yml,eta,py,go}',
    ).flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/\bremove (?:in|with) (\d+\.\d+\.\d+)/gi)].map(
        ([, removedIn]) => ({ path, removedIn: removedIn! }),
      ),
    );
    const due = ({ removedIn }: { removedIn: string }) =>
      version.localeCompare(removedIn, 'en', { numeric: true }) >= 0;
    expect(markers.length).toBeGreaterThan(0);
    expect(markers.filter(due)).toEqual([]);
    expect(due({ removedIn: version })).toBe(true);
  });

  it('has no line of SQL that is longer than 140 columns', () => {
    expect(paths.flatMap(longSqlOf)).toEqual([]);
  });
});

describe('programs that users may start with an older version of Node', () => {
  const named = [
    ...globSync('{README,CONTRIBUTING}.md'),
    ...globSync('docs/**/*.md'),
    '.ci/run',
    'package.json',
  ]
    .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/\bnode (bench\/[\w-]+\.mjs)/g)])
    .map(([, path]) => path!);

  it('import own-node.mjs first, if they are documented benchmarks', () => {
    const programs = [...new Set(named)];
    expect(programs.length).toBeGreaterThan(5);
    expect(programs.filter((path) => firstImportOf(path) !== "import './own-node.mjs';")).toEqual([]);
  });

  it('import only existing modules of the server, if they are benchmarks', () => {
    const modules = globSync('bench/**/*.mjs', { exclude: (name) => name === '.data' }).flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/\bdist\/(src\/[\w./-]+)\.js'/g)].map(([, module]) => module!),
    );
    expect(modules.length).toBeGreaterThan(5);
    expect(modules.filter((module) => !existsSync(`${module}.ts`))).toEqual([]);

    const names = [...readFileSync('bench/instances.mjs', 'utf8').matchAll(/\bload\('([\w.-]+)'\)/g)];
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter(([, name]) => globSync(`src/**/${name}.ts`).length !== 1)).toEqual([]);
  });

  it('use neither globSync nor import.meta.main, so that they can report Node 20 as unsupported', () => {
    const files = [
      ...globSync('{bench,examples,.ci}/**/*.mjs'),
      'bin/archives.mjs',
      'bin/build.mjs',
      'bin/guides.mjs',
      'bin/packages.mjs',
      'clients/typescript/build.mjs',
      'bin/smoke.mjs',
    ];
    expect(files.length).toBeGreaterThan(30);
    expect(
      files.filter((path) => /\bglobSync\b(?!`)|import\.meta\.main\b/.test(readFileSync(path, 'utf8'))),
    ).toEqual([]);
  });
});
