import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { exampleOf } from '../../src/cli/command.js';
import { createProgram } from '../../src/cli/program.js';
import { PROCESS, puaJson } from '../support/command-line.js';
import { OauthTest } from '../support/oauth.js';

jest.setTimeout(120_000);

/** Bold, green, yellow, red, and their ends: the colours of the command line. */
const STYLES = /\p{Cc}\[(1|22|32|33|31|39)m/gu;
/** What a progress bar writes: keeps the place and comes back to it, clears lines, hides the cursor, wraps no line. */
const PROGRESS_BAR = /\p{Cc}(\[(\?25[lh]|\d*[GJK]|\?7[lh])|[78])/gu;
/** A name that tries to steer the terminal, and how it is shown. */
const HOSTILE = 'Eve\u001b[31m\u009b31m\u202eRed';
const SHOWN = [HOSTILE, JSON.stringify(HOSTILE).slice(1, -1)].map((name) =>
  name.replace(/[\p{Cc}\p{Cf}]/gu, '\u{fffd}'),
);
const withoutNames = (text: string) => SHOWN.reduce((rest, name) => rest.replaceAll(name, ''), text);

/** Runs commands on a terminal (a pty), one after the other. @returns what each wrote there, both streams, and its exit code */
async function onTerminal(
  environment: Readonly<Record<string, string>>,
  commands: readonly (readonly string[])[],
): Promise<{ code: number; written: string }[]> {
  const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'terminal-'));
  const list = join(folder, 'commands.json');
  writeFileSync(list, JSON.stringify(commands));
  const host = join(import.meta.dirname, '../support/pua-on-terminal.mjs');
  const child = spawn('script', ['-qec', `'${process.execPath}' '${host}' '${list}'`, '/dev/null'], {
    cwd: folder,
    env: { ...PROCESS, TERM: 'xterm-256color', SHELL: '/bin/sh', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [written] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const lines = written.replaceAll('\r\n', '\n');
  return [...lines.matchAll(/([^]*?)\n\[exit (\d)\]\n/g)].map(([, output, code]) => ({
    code: Number(code),
    written: output!,
  }));
}

describe('pua on a terminal', () => {
  let oauth: OauthTest;
  let environment: Record<string, string>;
  /** Every command: one line each, in an order in which each works. */
  let commands: string[][];
  let colored: { code: number; written: string }[];
  let plain: { code: number; written: string }[];

  beforeAll(async () => {
    oauth = await OauthTest.start();
    environment = { ...oauth.api.environment, PUBLIC_URL: oauth.issuer };
    const createKey = (name: string, scopes: string) =>
      puaJson<{ id: string }>(environment, [
        'keys',
        'create',
        '--user',
        id,
        '--name',
        name,
        '--scopes',
        scopes,
      ]);
    const member = await oauth.member({ username: HOSTILE, first_name: HOSTILE, bio: HOSTILE });
    const id = String(member.id);
    const key = await createKey(HOSTILE, 'profile:read');
    const other = await createKey('日本語 🚲', 'profile:read,events:read');
    const clientId = await oauth.client({ name: 'Jürgen’s 日本 app' });
    await oauth.client({ name: 'Phone app', type: 'native', redirectUris: ['com.example.app:/callback'] });
    await oauth.tokens(clientId, HOSTILE);
    const folder = join(process.env.TEST_FOLDER!, `import-${id}`);
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'users.ndjson'),
      `${JSON.stringify({ id: 7_000_001, username: 'imported' })}\n`,
    );
    commands = [
      ['users', 'create', '--username', 'second', '--first-name', HOSTILE],
      ['users', 'show', id],
      ['users', 'set-password', id, '--password-stdin'],
      ['users', 'sessions', id],
      ['keys', 'list'],
      ['keys', 'show', key.id],
      ['keys', 'create', '--user', id, '--name', 'x', '--scopes', ''],
      ['keys', 'rotate', other.id],
      ['keys', 'revoke', key.id, '--reason', 'test'],
      ['clients', 'list'],
      ['clients', 'show', clientId],
      ['clients', 'create', '--name', 'x', '--type', 'web', '--redirect-uri', 'https://app.example/callback'],
      ['clients', 'disable', clientId],
      ['clients', 'enable', clientId],
      ['import', folder],
      ['db', 'status'],
      ['db', 'migrate'],
      ['db', 'rollback'],
      ['signing-keys', 'list'],
      ['signing-keys', 'rotate'],
      ['secrets', 'generate'],
      ['audit'],
      ['audit', 'prune', '--before', '90d'],
      ['doctor'],
      ['users', 'revoke-access', id],
      ['users', 'disable', id],
      ['users', 'enable', id],
      ['users', 'enable', id],
      ['users', 'erase', id],
    ];
    colored = await onTerminal(environment, commands);
    plain = await onTerminal({ ...environment, NO_COLOR: '1' }, [
      ['keys', 'show', key.id],
      ['clients', 'list'],
      ['doctor'],
      ['users', 'show', id],
    ]);
  });
  afterAll(() => oauth.close());

  /** What the command that begins so wrote, its styles taken out. */
  const written = (...begin: string[]) => {
    const index = commands.findIndex((args) => begin.every((word, i) => args[i] === word));
    return colored[index]!.written.replace(STYLES, '');
  };

  it('is tried with every command that there is', () => {
    const all = createProgram().commands.flatMap((command) => [
      ...(exampleOf(command) === undefined ? [] : [command.name()]),
      ...command.commands.map((child) => `${command.name()} ${child.name()}`),
    ]);
    const tried = commands.map(([first, second]) =>
      all.includes(`${first} ${second}`) ? `${first} ${second}` : first,
    );
    expect(new Set(tried)).toEqual(new Set(all));
  });

  it('ends every command as it does elsewhere; those that need a pipe or --yes say so', () => {
    const refused = [
      ['users', 'set-password'],
      ['db', 'rollback'],
      ['users', 'erase'],
    ];
    const expected = commands.map(([first, second]) => [
      `${first} ${second}`,
      refused.some(([group, name]) => group === first && name === second) ? 2 : 0,
    ]);
    expect(commands.map(([first, second], i) => [`${first} ${second}`, colored[i]?.code])).toEqual(expected);
  });

  it('has whole styles and nothing else that steers the terminal, whatever members and apps are called', () => {
    for (const [i, { written }] of colored.entries()) {
      const rest = withoutNames(written.replace(STYLES, '').replace(PROGRESS_BAR, ''));
      expect([commands[i], rest]).toEqual([
        commands[i],
        expect.not.stringMatching(/[^\P{Cc}\n\r]|\p{Cf}|\[\d+m/u),
      ]);
    }
  });

  it('shows U+FFFD only where a name holds a control character', () => {
    for (const [i, { written }] of colored.entries()) {
      const ours = withoutNames(written);
      expect([commands[i], ours]).toEqual([commands[i], expect.not.stringContaining('\u{fffd}')]);
    }
  });

  it.each([
    ['keys', 'show'],
    ['clients', 'show'],
    ['users', 'show'],
    ['users', 'create'],
  ])('%s %s has bold labels, and values in one column', (...command) => {
    const index = commands.findIndex(([first, second]) => first === command[0] && second === command[1]);
    const lines = colored[index]!.written.trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(line).toMatch(/^\p{Cc}\[1m\w+\p{Cc}\[22m +\S/u);
    const columns = lines.map((line) => line.replace(STYLES, '').search(/(?<=^\w+ +)\S/));
    expect(new Set(columns).size).toBe(1);
  });

  it.each([
    ['keys', 'list'],
    ['clients', 'list'],
    ['db', 'status'],
  ])('%s %s has its columns under their heads', (...command) => {
    const [head, ...rows] = written(...command)
      .trimEnd()
      .split('\n');
    expect(rows.length).toBeGreaterThan(1);
    for (const row of rows.filter((line) => !/[^\p{ASCII}\p{Script=Latin}–…’]/u.test(line)))
      for (const { index } of head!.matchAll(/(?<=\S {2,})\S/g))
        expect([row, row.slice(index - 2, index)]).toEqual([row, '  ']);
  });

  it('has no style at all where NO_COLOR is set', () => {
    expect(plain.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    for (const { written } of plain) expect(written).not.toContain('\u001b');
  });
});
