#!/usr/bin/env node
// Whether tests notice mistakes: `npm run mutants [-- area …] [--most <n>] [--seed <n>]`. Makes one plausible mistake at a time in a
// copy of the source (a comparison the other way, a condition left out, a call that is not made, an AND of a statement turned into OR),
// and runs the near tests: first on the embedded database, then, if nothing failed, on PostgreSQL. Of each area `--most` mistakes (20)
// are drawn by `--seed` (1). Ends with 1 if fewer than 85 % of an area's are noticed, and lists those that were not.
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';

const LEAST = 0.85;
/** A mistake may never come to an end: that is noticed. */
const MOST_MS = 240_000;

/** Source of an area, and the tests beside it. */
const AREAS = {
  auth: {
    source: ['src/auth/**/*.ts'],
    tests: [
      'src/auth/',
      'test/api/credential',
      'test/api/revocation',
      'test/api/errors',
      'test/api/rate-limits',
      'test/api/usage',
      'test/api/shared-limits',
      'test/oauth/flow',
      'test/oauth/dpop-refresh',
      'test/oauth/account.e2e',
      'test/oauth/developer.e2e',
      'test/cli/cli.e2e',
    ],
  },
  changes: {
    source: ['src/changes/*.ts', 'src/features/sync/*.ts', 'src/platform/*.ts'],
    tests: [
      'test/api/changes',
      'test/api/sync',
      'test/api/who-is-told',
      'test/platform/',
      'test/database/replicas',
    ],
  },
  webhooks: { source: ['src/webhooks/*.ts'], tests: ['test/webhooks/', 'src/http/public-https'] },
  keyset: {
    source: ['src/database/{keyset,list,where-builder}.ts'],
    tests: ['test/api/paging', 'test/api/events', 'test/api/connections', 'test/api/achievements'],
  },
  'token-request': {
    source: [
      'src/authorization-server/requests/token-request.ts',
      'src/authorization-server/requests/refresh-grace-period.ts',
    ],
    tests: [
      'src/authorization-server/',
      'test/oauth/refresh',
      'test/oauth/dpop-refresh',
      'test/oauth/flow',
      'test/oauth/inputs',
      'test/oauth/races',
      'test/oauth/consents',
    ],
  },
  import: { source: ['src/operations/import/*.ts'], tests: ['test/operations/import', 'test/platform/feed'] },
  clients: {
    source: ['src/clients/*.ts'],
    tests: [
      'src/clients/',
      'test/oauth/developer.e2e',
      'test/oauth/cli',
      'test/oauth/names',
      'test/oauth/account',
      'test/oauth/key-rotation',
      'test/oauth/origins',
      'test/cli/',
    ],
  },
  admission: {
    source: ['src/http/admission/*.ts', 'src/http/pipeline/front-door.ts'],
    tests: ['src/http/', 'test/api/front-door'],
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { most: { type: 'string', default: '20' }, seed: { type: 'string', default: '1' } },
});
const unknown = positionals.filter((name) => !(name in AREAS));
if (unknown.length > 0) {
  console.error(`No such area: ${unknown.join(', ')}. There are ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}

const { SyntaxKind } = ts;
const OTHER_OPERATOR = new Map([
  [SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [SyntaxKind.LessThanToken, '<='],
  [SyntaxKind.LessThanEqualsToken, '<'],
  [SyntaxKind.GreaterThanToken, '>='],
  [SyntaxKind.GreaterThanEqualsToken, '>'],
  [SyntaxKind.AmpersandAmpersandToken, '||'],
  [SyntaxKind.BarBarToken, '&&'],
  [SyntaxKind.MinusToken, '+'],
  [SyntaxKind.AsteriskToken, '/'],
]);
const IS_SQL = /\b(SELECT|UPDATE|DELETE FROM|INSERT INTO|WHERE)\b/;
/** What a statement may say wrongly. `AND` of BETWEEN is none of these: the statement could not be read. */
const IN_SQL = [
  [/(?<!BETWEEN [^\s]+ )\bAND\b/g, 'OR'],
  [/\bNOT (?=EXISTS)/g, ''],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/(?<=[\w)] )<(?= [\w$(])/g, '<='],
  [/(?<=[\w)] )>(?= [\w$(])/g, '>='],
];

/** @returns every mistake that could be made in a file */
function mistakesIn(path) {
  const text = readFileSync(path, 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found = [];
  const replace = (start, end, by) => {
    const { line } = file.getLineAndCharacterOfPosition(start);
    found.push({
      path,
      line: line + 1,
      was: text.slice(start, end),
      by,
      text: text.slice(0, start) + by + text.slice(end),
    });
  };
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isDecorator(node)) return;
    if (ts.isBinaryExpression(node)) {
      const other = OTHER_OPERATOR.get(node.operatorToken.kind);
      if (other) replace(node.operatorToken.getStart(), node.operatorToken.end, other);
    }
    if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
      replace(node.getStart(), node.operand.getStart(), '');
    if (ts.isIfStatement(node))
      replace(node.expression.getStart(), node.expression.end, `false && (${node.expression.getText()})`);
    if (ts.isConditionalExpression(node))
      replace(
        node.whenTrue.getStart(),
        node.whenFalse.end,
        `${node.whenFalse.getText()} : ${node.whenTrue.getText()}`,
      );
    if (node.kind === SyntaxKind.TrueKeyword) replace(node.getStart(), node.end, 'false');
    if (node.kind === SyntaxKind.FalseKeyword) replace(node.getStart(), node.end, 'true');
    if (
      ts.isExpressionStatement(node) &&
      /^(await )?[\w.#]+\(/.test(node.getText()) &&
      !/^super|\blogger\b/.test(node.getText())
    )
      replace(node.getStart(), node.end, ';');
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      const literal = node.getText();
      if (IS_SQL.test(node.parent.parent ? node.parent.parent.getText() : literal) || IS_SQL.test(literal))
        for (const [pattern, by] of IN_SQL)
          for (const match of literal.matchAll(pattern))
            replace(node.getStart() + match.index, node.getStart() + match.index + match[0].length, by);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Draws so many, the same for the same seed. */
function draw(all, most, seed) {
  let state = seed;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const left = [...all];
  return Array.from(
    { length: Math.min(most, left.length) },
    () => left.splice(Math.floor(random() * left.length), 1)[0],
  );
}

const folder = mkdtempSync(join(tmpdir(), 'pua-mutants-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(130));
for (const path of spawnSync('git', ['ls-files', '-z'], { encoding: 'utf8' })
  .stdout.split('\0')
  .filter(Boolean))
  cpSync(path, join(folder, path), { recursive: true });
symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));

const { TEST_DATABASE_URL: url, ...embedded } = process.env;
/** @returns whether a test failed */
function isNoticed(tests, environment) {
  const { status } = spawnSync(
    process.execPath,
    ['node_modules/jest/bin/jest.js', '--bail', '--silent', ...tests],
    { cwd: folder, env: environment, stdio: 'ignore', timeout: MOST_MS },
  );
  return status !== 0;
}

let isBad = false;
for (const name of positionals.length > 0 ? positionals : Object.keys(AREAS)) {
  const { source, tests } = AREAS[name];
  const databases = url === undefined ? [embedded] : [embedded, { ...embedded, TEST_DATABASE_URL: url }];
  for (const environment of databases)
    if (isNoticed(tests, environment))
      throw new Error(`The tests of ${name} fail as they are: ${tests.join(' ')}`);
  const all = globSync(source)
    .filter((path) => !path.endsWith('.spec.ts'))
    .toSorted()
    .flatMap(mistakesIn);
  const drawn = draw(all, Number(values.most), Number(values.seed));
  const survivors = [];
  for (const mistake of drawn) {
    const original = readFileSync(mistake.path);
    writeFileSync(join(folder, mistake.path), mistake.text);
    if (!databases.some((environment) => isNoticed(tests, environment))) {
      survivors.push(mistake);
      console.log(
        `  ${mistake.path}:${mistake.line}  ${mistake.was.split('\n')[0]}  →  ${mistake.by.split('\n')[0]}`,
      );
    }
    writeFileSync(join(folder, mistake.path), original);
  }
  const share = 1 - survivors.length / drawn.length;
  isBad ||= share < LEAST;
  console.log(
    `${name}: ${drawn.length - survivors.length} of ${drawn.length} noticed (${all.length} possible)`,
  );
}
process.exitCode = isBad ? 1 : 0;
