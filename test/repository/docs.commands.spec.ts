import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import type { CommanderError, CommandUnknownOpts } from '@commander-js/extra-typings';
import { exampleOf } from '../../src/cli/command.js';
import { createProgram } from '../../src/cli/program.js';

/** A value for a placeholder, which the option's own parser accepts. */
const PLACEHOLDERS: Readonly<Record<string, string>> = { '<duration>': '7d', '…': 'x' };
/** Options that read a file. */
const FILES = ['--jwks-file', '--logo-file'];

/** Commands in code blocks and inline code: the text after `pua`, up to shell syntax. */
function commandsIn(markdown: string): { line: string; words: string[] }[] {
  const blocks = [...markdown.matchAll(/^( *)```\w*\n([^]*?)^\1```/gm)].flatMap(([, , block]) =>
    block!.replaceAll(/\\\n\s*/g, '').split('\n'),
  );
  const spans = [...markdown.replace(/^( *)```[^]*?^\1```/gm, '').matchAll(/`([^`]+)`/g)].map(
    ([, span]) => span!,
  );
  return [...blocks, ...spans].flatMap((code) =>
    [...code.matchAll(/(?:^|[\s("=])pua ([a-z][^]*)/g)].map(([line, rest]) => {
      const [typed] = /^(?:'[^']*'|"[^"]*"|<[\w|]+>|[^'"`|;&<>)#]|(?<=\S)#)*/.exec(rest!)!;
      const words = [...typed.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
        word.replace(/^['"]|['"]$/g, ''),
      );
      return { line: line.trim(), words };
    }),
  );
}

/** The command-line program with commands that do nothing. */
function idle(command: CommandUnknownOpts): CommandUnknownOpts {
  for (const child of command.commands) idle(child);
  if (exampleOf(command) !== undefined) command.action(() => undefined);
  return command.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
}

/** Parts that a mention of a command may omit. */
const LEFT_OUT = [
  'commander.missingArgument',
  'commander.missingMandatoryOptionValue',
  'commander.optionMissingArgument',
  'commander.help',
];

/** The fault of a command; undefined if valid. A command without arguments may be only a mention. */
async function faultOf(words: readonly string[]): Promise<string | undefined> {
  const program = idle(await createProgram());
  let names = 0;
  const childNamed = (command: CommandUnknownOpts, name: string | undefined) =>
    command.commands.find((child) => child.name() === name);
  for (let at = childNamed(program, words[0]); at; at = childNamed(at, words[names])) names++;
  const args = words
    .filter((word) => !/^\[\w+\]$/.test(word))
    .map((word, i) => {
      if (FILES.includes(words[i - 1]!)) return 'package.json';
      return PLACEHOLDERS[word] ?? (/^[<$]/.test(word) ? 'x' : word);
    });
  try {
    program.parse(args, { from: 'user' });
    return undefined;
  } catch (error) {
    const { code, message } = error as CommanderError;
    const isMention = words[names]?.startsWith('-') ?? true;
    return isMention && LEFT_OUT.includes(code) ? undefined : message;
  }
}

describe('a command in a document', () => {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { encoding: 'utf8' })
    .trim()
    .split('\n');
  const found = files.flatMap((file) =>
    commandsIn(readFileSync(file, 'utf8')).map(({ line, words }) => [file, line, words] as const),
  );

  it('exists, with existing options and accepted values', async () => {
    expect(found.length).toBeGreaterThan(100);
    const wrong: string[] = [];
    for (const [file, line, words] of found) {
      const fault = await faultOf(words);
      if (fault !== undefined) wrong.push(`${file}: ${line.slice(0, 100)}: ${fault}`);
    }
    expect(wrong).toEqual([]);
  });
});
