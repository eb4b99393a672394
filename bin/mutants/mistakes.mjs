// The mistakes of a mutation run: a reversed comparison, a missing condition, swapped branches, a missing call, or OR instead of AND in
// SQL. Types, imports, decorators and log calls stay unchanged.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ts from 'typescript';

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
/** Mistakes in SQL. `AND` of BETWEEN is excluded: the statement would be invalid. */
const IN_SQL = [
  [/(?<!BETWEEN [^\s]+ )\bAND\b/g, 'OR'],
  [/\bNOT (?=EXISTS)/g, ''],
  [/\bIS NOT NULL\b/g, 'IS NULL'],
  [/(?<=[\w)] )<(?= [\w$(])/g, '<='],
  [/(?<=[\w)] )>(?= [\w$(])/g, '>='],
];
const CALL = /^(await )?[\w.#]+\(/;
const TO_LOG = /^(await )?[\w.#]*\b(logger|log)\b/;

const isText = (node) =>
  ts.isTemplateExpression(node) || (ts.isStringLiteralLike(node) && node.text.includes(' '));

/** @returns every possible mistake in a file, with its line number (from 1), the line's code, and the changed text */
export function mistakesIn(path) {
  const text = readFileSync(path, 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lines = text.split('\n');
  const found = [];
  const replace = (start, end, by) => {
    const { line } = file.getLineAndCharacterOfPosition(start);
    found.push({
      path,
      line: line + 1,
      code: lines[line].trim(),
      was: text.slice(start, end),
      by,
      text: text.slice(0, start) + by + text.slice(end),
    });
  };
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isDecorator(node)) return;
    if (ts.isExpressionStatement(node)) {
      const code = node.getText();
      if (TO_LOG.test(code)) return;
      if (CALL.test(code) && !code.startsWith('super')) replace(node.getStart(), node.end, ';');
    }
    if (ts.isBinaryExpression(node)) {
      const other = OTHER_OPERATOR.get(node.operatorToken.kind);
      if (other) replace(node.operatorToken.getStart(), node.operatorToken.end, other);
    }
    if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
      replace(node.getStart(), node.operand.getStart(), '');
    if (ts.isIfStatement(node))
      replace(node.expression.getStart(), node.expression.end, `false && (${node.expression.getText()})`);
    if (ts.isConditionalExpression(node) && !(isText(node.whenTrue) && isText(node.whenFalse)))
      replace(
        node.whenTrue.getStart(),
        node.whenFalse.end,
        `${node.whenFalse.getText()} : ${node.whenTrue.getText()}`,
      );
    if (node.kind === SyntaxKind.TrueKeyword) replace(node.getStart(), node.end, 'false');
    if (node.kind === SyntaxKind.FalseKeyword) replace(node.getStart(), node.end, 'true');
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

/** @returns whether a file of src has no type errors with the changed text; ignores unused names */
export function typeChecker() {
  const { options, fileNames } = ts.parseJsonConfigFileContent(
    ts.readConfigFile('tsconfig.json', ts.sys.readFile).config,
    ts.sys,
    process.cwd(),
  );
  const roots = fileNames.filter((path) => path.startsWith(resolve('src')));
  let changed = { path: '', text: '' };
  let version = 0;
  const service = ts.createLanguageService({
    getCompilationSettings: () => ({ ...options, noUnusedLocals: false, noUnusedParameters: false }),
    getScriptFileNames: () => roots,
    getScriptVersion: (path) => (path === changed.path ? String(version) : '0'),
    getScriptSnapshot: (path) => {
      const text = path === changed.path ? changed.text : ts.sys.readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => process.cwd(),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
  });
  return (path, text) => {
    changed = { path: resolve(path), text };
    version++;
    return (
      service.getSyntacticDiagnostics(changed.path).length === 0 &&
      service.getSemanticDiagnostics(changed.path).length === 0
    );
  };
}
