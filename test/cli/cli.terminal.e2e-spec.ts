import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exampleOf } from '../../src/cli/command.js';
import { createProgram } from '../../src/cli/program.js';
import { asShown } from '../../src/values/string-rules.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { PROCESS, puaJson } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';

/** Bold, green, yellow, red, and their ends: the colors of the command line. */
const STYLES = /\p{Cc}\[(1|22|32|33|31|39)m/gu;
/** Sequences of a progress bar: saves and restores the position, clears lines, hides the cursor, disables line wrapping. */
const PROGRESS_BAR = /\p{Cc}(\[(\?25[lh]|\d*[GJK]|\?7[lh])|[78])/gu;
/** A name that tries to control the terminal, and its displayed form. */
const HOSTILE = 'Eve\u001b[31m\u009b31m\u202eRed';
const SHOWN = [
  asShown(HOSTILE), // as doctor prints it
  ...[HOSTILE, JSON.stringify(HOSTILE).slice(1, -1)].map((name) =>
    name.replace(/[\p{Cc}\p{Cf}]/gu, '\u{fffd}'),
  ),
];
const withoutNames = (text: string) => SHOWN.reduce((rest, name) => rest.replaceAll(name, ''), text);

/**
 * Runs commands on a terminal (a pty), one after the other.
 *
 * @param columns of the terminal; without it the width is unknown
 * @param answers typed at each question in turn
 * @returns the output of each command to both streams, and its exit code
 */
async function onTerminal(
  environment: Readonly<Record<string, string>>,
  commands: readonly (readonly string[])[],
  { columns, answers = [] }: { columns?: number; answers?: readonly string[] } = {},
): Promise<{ code: number; written: string }[]> {
  const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'terminal-'));
  const list = join(folder, 'commands.json');
  writeFileSync(list, JSON.stringify(commands));
  const host = join(import.meta.dirname, '../support/pua-on-terminal.mjs');
  const wide = columns === undefined ? '' : `stty cols ${columns}; `;
  const child = spawn('script', ['-qec', `${wide}'${process.execPath}' '${host}' '${list}'`, '/dev/null'], {
    cwd: folder,
    env: { ...PROCESS, TERM: 'xterm-256color', SHELL: '/bin/sh', ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 100_000, // no process outlives a failed test
  });
  let seen = '';
  const left = [...answers];
  child.stdout!.on('data', (chunk: Buffer) => {
    seen += chunk.toString();
    if (!seen.includes('[y/N] ')) return;
    seen = '';
    child.stdin!.write(left.shift() ?? '');
  });
  const [written] = await Promise.all([text(child.stdout!), once(child, 'close')]);
  const lines = written.replaceAll('\r\n', '\n');
  return [...lines.matchAll(/([^]*?)\n\[exit (\d)\]\n/g)].map(([, output, code]) => ({
    code: Number(code),
    written: output!,
  }));
}

postgres.describe('pua on a terminal', () => {
  let oauth: OauthTest;
  let environment: Record<string, string>;
  let clientId: string;
  /** Every command, in an order in which each command works. */
  let commands: string[][];
  let colored: { code: number; written: string }[];
  let plain: { code: number; written: string }[];

  beforeAll(async () => {
    oauth = await OauthTest.start();
    environment = { ...oauth.api.environment, PUBLIC_URL: oauth.issuer };
    const createKey = (name: string, scopes: string) =>
      puaJson<{ id: string }>(environment, [
        ...`keys create --user ${id} --scopes ${scopes} --name`.split(' '),
        name,
      ]);
    const member = await oauth.member({ username: HOSTILE, first_name: HOSTILE, bio: HOSTILE });
    const id = String(member.id);
    const key = await createKey('Eve', 'profile:read');
    // A name from before the naming rules.
    await oauth.query('UPDATE api_keys SET name = $2 WHERE id = $1', [key.id, HOSTILE]);
    const other = await createKey('日本語 🚲', 'profile:read,events:read');
    clientId = await oauth.client({ name: 'Jürgen’s 日本 app' });
    await oauth.client({ name: 'Phone app', type: 'native', redirect_uris: ['com.example.app:/callback'] });
    const withSecret = await oauth.client({ profile: 'oidc', secret_auth_method: 'client_secret_basic' });
    const [toApprove, toReject] = [await oauth.appToReview(member.id), await oauth.appToReview(member.id)];
    await oauth.tokens(clientId, HOSTILE);
    const folder = join(process.env.TEST_FOLDER!, `import-${id}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'users.ndjson'), JSON.stringify({ id: 7_000_001, username: 'imported' }));
    const [passkey] = await oauth.query<{ id: number }>(
      `INSERT INTO passkeys (user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
VALUES ($1, '\\x01', '\\x01', '\\x01', 0, false, false, $2) RETURNING id`,
      [id, HOSTILE],
    );
    const nowhere = 'http://127.0.0.1:1/hook';
    const webhook = await new WebhooksService(oauth.dataSource, oauth.api.config).create({
      url: nowhere,
      types: ['profile.updated'],
      actor: 'admin',
    });
    commands = [
      ['users', 'create', '--username', 'second', '--first-name', HOSTILE],
      ['users', 'show', id],
      ['users', 'list'],
      ['users', 'update', id, '--bio', HOSTILE],
      ['users', 'set-password', id, '--password-stdin'],
      ['users', 'sessions', id],
      ['users', 'passkeys', id],
      ['users', 'remove-passkey', id, String(passkey!.id)],
      ['keys', 'list'],
      ['keys', 'show', key.id],
      ['keys', 'create', '--user', id, '--name', 'x', '--scopes', ''],
      ['keys', 'rotate', other.id],
      ['keys', 'revoke', key.id, '--reason', 'test', '--yes'],
      ['clients', 'list'],
      ['clients', 'show', clientId],
      ['clients', 'create', '--name', 'x', '--type', 'web', '--redirect-uri', 'https://app.example/callback'],
      ['clients', 'disable', clientId],
      ['clients', 'enable', clientId],
      ['clients', 'update', clientId, '--add-origin', 'https://app.example'],
      ['clients', 'rotate-secret', withSecret],
      ['clients', 'review', toApprove],
      ['clients', 'approve', toApprove],
      ['clients', 'reject', toReject, '--reason', 'test'],
      ['clients', 'delete', clientId],
      ['webhooks', 'create', '--url', nowhere, '--types', 'profile.updated', '--platform'],
      ['webhooks', 'list'],
      ['webhooks', 'test', webhook.id],
      ['webhooks', 'show', webhook.id],
      ['webhooks', 'redeliver', webhook.id],
      ['webhooks', 'rotate', webhook.id],
      ['webhooks', 'disable', webhook.id, '--yes'],
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
      ['status'],
      ['open', 'docs'],
      ['completion', 'zsh'],
      ['users', 'revoke-access', id],
      ['users', 'disable', id],
      ['users', 'enable', id],
      ['users', 'enable', id],
      ['users', 'erase', id],
    ];
    colored = await onTerminal(environment, commands, { answers: Array<string>(3).fill('n\r') });
    plain = await onTerminal({ ...environment, NO_COLOR: '1' }, [
      ['keys', 'show', key.id],
      ['clients', 'list'],
      ['doctor'],
      ['users', 'show', id],
    ]);
  });
  afterAll(() => oauth.close());

  /** Output of the command that begins with this text, without its styles. */
  const written = (...begin: string[]) => {
    const index = commands.findIndex((args) => begin.every((word, i) => args[i] === word));
    return colored[index]!.written.replace(STYLES, '');
  };

  it('is tested with every command', async () => {
    const all = (await createProgram()).commands.flatMap((command) => [
      ...(exampleOf(command) === undefined ? [] : [command.name()]),
      ...command.commands.map((child) => `${command.name()} ${child.name()}`),
    ]);
    const tried = commands.map(([first, second]) =>
      all.includes(`${first} ${second}`) ? `${first} ${second}` : first,
    );
    expect(new Set(tried)).toEqual(new Set(all));
  });

  it('exits with 0, except set-password without a pipe and webhooks test without a reachable endpoint', () => {
    const codes: Record<string, number> = {
      'users set-password': 2,
      'webhooks test': 1, // no endpoint responds
    };
    const expected = commands.map(([first, second]) => [
      `${first} ${second}`,
      codes[`${first} ${second}`] ?? 0,
    ]);
    expect(commands.map(([first, second], i) => [`${first} ${second}`, colored[i]?.code])).toEqual(expected);
  });

  it('prints no control characters of names, only those of its styles and progress bar', () => {
    for (const [i, { written }] of colored.entries()) {
      const rest = withoutNames(written.replace(STYLES, '').replace(PROGRESS_BAR, ''));
      expect([commands[i], rest]).toEqual([
        commands[i],
        expect.not.stringMatching(/[^\P{Cc}\n\r]|\p{Cf}|\[\d+m/u),
      ]);
    }
  });

  it('prints U+FFFD only in names with control characters', () => {
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
  ])('prints %s %s with bold labels, and with values in one column', (...command) => {
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
  ])('prints the columns of %s %s under their headings', (...command) => {
    const [head, ...rows] = written(...command)
      .trimEnd()
      .split('\n');
    expect(rows.length).toBeGreaterThan(1);
    for (const row of rows.filter((line) => !/[^\p{ASCII}\p{Script=Latin}–…’]/u.test(line)))
      for (const { index } of head!.matchAll(/(?<=\S {2,})\S/g))
        expect([row, row.slice(index - 2, index)]).toEqual([row, '  ']);
  });

  it('requests confirmation of commands such as users erase, and continues only after y or yes', async () => {
    const [one, two] = [await oauth.member({ username: 'lost' }), await oauth.client({ name: 'Lost' })];
    const commands = [
      ['users', 'erase', String(one.id)],
      ['clients', 'delete', two],
      ['db', 'rollback'],
      ['clients', 'delete', two],
      ['users', 'erase', String(one.id)],
      ['keys', 'revoke', 'nothing', '--reason', 'test'],
      ['webhooks', 'disable', 'nothing'],
    ];
    const ended = await onTerminal(environment, commands, {
      answers: ['\r', 'no\r', '\u0003', 'y\r', 'yes\r', 'no\r', 'no\r'],
    });
    expect(ended.map(({ code }) => code)).toEqual(Array(7).fill(0));
    expect(ended.map(({ written }) => written.includes('Continue? [y/N]'))).toEqual(Array(7).fill(true));
    expect(ended[0]!.written).toMatch(/about lost \(id \d+\) would be erased [^]*\nNothing was done\n$/);
    expect(ended[2]!.written).toMatch(
      /These statements would undo [^]*(DROP|ALTER|DELETE)[^]*\nNothing was done\n$/,
    );
    expect(ended[3]!.written).toContain(`${two} is deleted`);
    expect(ended[4]!.written).toContain(`${one.id} is erased`);
    expect(await puaJson(environment, ['db', 'status'])).toMatchObject({ pending: [] });
  });

  it('rejects db rollback with --json instead of requesting confirmation', async () => {
    const [{ code, written } = { code: 0, written: '' }] = await onTerminal(environment, [
      ['db', 'rollback', '--json'],
    ]);
    expect([code, written]).toEqual([2, expect.stringContaining('"code":"wrong_use"')]);
  });

  it('prints lists within 120 columns, with complete client ids, event types and times', async () => {
    const { lists, shown } = await listsAt(120);
    for (const [i, written] of shown.entries())
      for (const line of written.split('\n'))
        expect([lists[i], line, [...line].length <= 120]).toEqual([lists[i], line, true]);
    expect(shown[0]).toMatch(/^ID {2,}USER {2,}NAME {2,}ENV/);
    expect(shown[1]).toMatch(new RegExp(`^ID +${clientId}$`, 'm')); // too wide with the column REVIEW
    expect(shown[3]).toMatch(
      /^TIME \(UTC\) {2,}TYPE[^]*\d{4}-\d\d-\d\d \d\d:\d\d {2}client\.secret_rotated /,
    );
  });

  it('prints one block per row if a table exceeds 80 columns, without empty fields', async () => {
    const { shown } = await listsAt(80);
    const [keys, clients, users, audit] = shown;
    for (const record of keys!.trim().split('\n\n'))
      expect(record).toMatch(/^ID +[0-9A-Za-z]{12}\nUSER +\d+ /);
    expect(keys).not.toMatch(/EXPOSED|…|–/);
    expect(clients).toMatch(
      new RegExp(`^ID +${clientId}$[^]*^SCOPES +profile:read,profile:write,[\\w:,]+$`, 'm'),
    );
    expect(users).toMatch(/^ID {2,}USERNAME {2,}NAME/);
    expect(audit).toMatch(/^TIME \(UTC\) +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nTYPE +[a-z._]+\nACTOR /);
  });

  it('prints “none” for an empty list, and “no sessions” and “no apps” for a member without them', async () => {
    const nothing = [
      ['keys', 'list', '--user', 'imported'],
      ['users', 'sessions', 'imported'],
      ['audit', '--key', 'nothing'],
    ];
    const shown = await onTerminal({ ...environment, NO_COLOR: '1' }, nothing, { columns: 80 });
    expect(shown).toEqual(
      ['none', 'no sessions\n\nno apps', 'none'].map((written) => ({ code: 0, written: `${written}\n` })),
    );
  });

  const listsAt = async (columns: number) => {
    const lists = [['keys', 'list'], ['clients', 'list'], ['users', 'list'], ['audit']];
    const ended = await onTerminal({ ...environment, NO_COLOR: '1' }, lists, { columns });
    expect(ended.map(({ code }) => code)).toEqual(lists.map(() => 0));
    return { lists, shown: ended.map(({ written }) => written) };
  };

  it('shows an import’s progress: file, speed and remaining time', async () => {
    const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'big-'));
    const lines = Array.from(
      { length: 20_000 },
      (_, i) => `${JSON.stringify({ id: 8_000_000 + i, username: `bulk-${i}` })}\n`,
    );
    writeFileSync(join(folder, 'users.ndjson'), lines.join(''));
    const [{ code, written } = { code: 1, written: '' }] = await onTerminal(
      environment,
      [['import', folder, '--dry-run']],
      { columns: 120 },
    );
    expect(code).toBe(0);
    expect(written).toMatch(/\d+ % users(\.ndjson)?, [\d,]+ records\/s, \d+ (s|min) left/);
  });

  it('prints no style if NO_COLOR is set', () => {
    expect(plain.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    for (const { written } of plain) expect(written).not.toContain('\u001b');
  });
});
