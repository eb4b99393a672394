import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { thorough } from '../support/database.js';

const parse = (path: string) =>
  ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);

/** Exported functions of a file: their names, with what is written above each, without its tags. */
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

const firstImportOf = (path: string) => /^import .*$/m.exec(readFileSync(path, 'utf8'))?.[0] ?? '';

const LONGEST_SQL = 140;

/** Lines of SQL, in templates and texts, that are too long to be read. */
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
        if (lines[line]!.length > LONGEST_SQL) found.add(`${path}:${line + 1}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return [...found];
}

thorough.describe('the code', () => {
  const paths = globSync('src/**/*.ts').filter((path) => !path.endsWith('.spec.ts'));

  it('calls `.service.ts` what exports a service', () => {
    const services = paths.filter((path) => path.endsWith('.service.ts'));
    expect(services.length).toBeGreaterThan(3);
    expect(
      services.filter((path) => !/^export class \w+Service\b/m.test(readFileSync(path, 'utf8'))),
    ).toEqual([]);
  });

  it('writes to the audit trail in one file, whose ways of doing so take the act as well', () => {
    const writers = paths.filter((path) => /INSERT INTO auth_events/i.test(readFileSync(path, 'utf8')));
    expect(writers).toEqual(['src/audit/audit.ts']);
  });

  it('has no line of SQL that is longer than 140 columns', () => {
    expect(paths.flatMap(longSqlOf)).toEqual([]);
  });
});

describe('programs that are started by `node`, which may be older than the one of the project', () => {
  const named = [
    ...globSync('{README,CONTRIBUTING}.md'),
    ...globSync('docs/**/*.md'),
    '.ci/run',
    'package.json',
  ]
    .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/\bnode (bench\/[\w-]+\.mjs)/g)])
    .map(([, path]) => path!);

  it('of the benchmark go on with the Node that npm ci installed', () => {
    const programs = [...new Set(named)];
    expect(programs.length).toBeGreaterThan(15);
    expect(programs.filter((path) => firstImportOf(path) !== "import './own-node.mjs';")).toEqual([]);
  });

  it('import nothing that Node 20 lacks, since it would say so before anything of theirs runs', () => {
    const files = [
      ...globSync('{bench,examples,.ci}/**/*.mjs'),
      'bin/build.mjs',
      'bin/guides.mjs',
      'bin/smoke.mjs',
    ];
    expect(files.length).toBeGreaterThan(30);
    expect(
      files.filter((path) => /\bglobSync\b(?!`)|import\.meta\.main\b/.test(readFileSync(path, 'utf8'))),
    ).toEqual([]);
  });
});

thorough.describe('exported functions', () => {
  const paths = globSync('src/**/*.ts').filter((path) => !path.endsWith('.spec.ts'));
  const functions = paths.flatMap(functionsOf);

  it('say in a sentence what they do', () => {
    expect(functions.length).toBeGreaterThan(250);
    const mute = functions.filter(([, text]) => !/^[A-Z`{4][^]{8,}[.:;?)\d]$/.test(text.trim()));
    expect(mute.map(([name]) => name)).toEqual([]);
  });
});
