import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';

/** Exported functions of a file: their names, with what is written above each, without its tags. */
function functionsOf(path: string): [string, string][] {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
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

describe('exported functions', () => {
  const paths = globSync('src/**/*.ts').filter((path) => !path.endsWith('.spec.ts'));
  const functions = paths.flatMap(functionsOf);

  it('say in a sentence what they do', () => {
    expect(functions.length).toBeGreaterThan(250);
    const mute = functions.filter(([, text]) => !/^[A-Z`{4][^]{8,}[.:;?)\d]$/.test(text.trim()));
    expect(mute.map(([name]) => name)).toEqual([]);
  });
});
