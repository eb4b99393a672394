import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { VERSION } from '../../src/config/version.js';
import { TestApi } from '../support/api.js';
import { PROCESS, pua, puaJson } from '../support/command-line.js';
import { postgres } from '../support/database.js';

let api: TestApi;
let environment: Record<string, string>;
beforeAll(async () => {
  api = await TestApi.start();
  environment = { ...api.environment, PUBLIC_URL: await api.app.getUrl() };
});
afterAll(() => api.close());

interface Status {
  healthy: boolean;
  server: { address: string; ready: boolean; version: string | null; problem: string | null };
  counts: Record<string, number> | null;
  findings: { name: string; status: string }[];
}

describe('pua status', () => {
  it('shows the server’s readiness, version and counts in fewer than 24 lines', async () => {
    const user = String(await api.platform.user());
    await api.platform.user({ disabled_at: new Date() });
    await puaJson(environment, [
      'keys',
      'create',
      '--user',
      user,
      '--name',
      'x',
      '--scopes',
      '',
      '--expires',
      '7d',
    ]);
    const { code, stdout, stderr } = await pua(environment, ['status']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      new RegExp(`^server +${environment.PUBLIC_URL} is ready, in \\d+ ms\nversion +${VERSION}\n`),
    );
    expect(stdout).toMatch(/^database +PostgreSQL .*\nmigrations +\d+ applied, none pending$/m);
    const [there] = await api.query<{ members: number }>('SELECT count(*) AS members FROM users');
    expect(stdout).toMatch(
      new RegExp(
        `^members +${there!.members}, 1 disabled\n[^]*^keys +\\d+, \\d+ expire within 30 days\nwebhooks +0\n`,
        'm',
      ),
    );
    expect(stdout.split('\n').length).toBeLessThan(24);
  });

  it('prints the server’s state as JSON', async () => {
    expect(await puaJson<Status>(environment, ['status'])).toMatchObject({
      healthy: true,
      server: { address: environment.PUBLIC_URL, ready: true, version: VERSION, problem: null },
      counts: { members: expect.any(Number), messages_due: 0 },
    });
  });

  it.each<[string, (request: unknown, response: import('node:http').ServerResponse) => void, RegExp]>([
    ['no server responds', (_, response) => response.destroy(), /^does not respond \(/],
    [
      'another program responds',
      (_, response) => response.end('<html>'),
      /^responds with 200, and is not this server$/,
    ],
    [
      'the server is not ready, with the reason',
      (_, response) =>
        response
          .writeHead(503, { 'Content-Type': 'application/problem+json' })
          .end('{"detail":"The database lacks migrations."}'),
      /^is not ready: The database lacks migrations\.$/,
    ],
  ])('reports that %s, and exits with 1', async (_, answer, problem) => {
    const other = createServer(answer).listen(0, '127.0.0.1');
    const PUBLIC_URL = await new Promise<string>((resolve) =>
      other.once('listening', () => resolve(`http://127.0.0.1:${(other.address() as AddressInfo).port}`)),
    );
    const { code, stdout, stderr } = await pua({ ...environment, PUBLIC_URL }, ['status', '--json']);
    other.close();
    expect([code, JSON.parse(stderr)]).toMatchObject([1, { error: { code: 'failed' } }]);
    const { server, counts } = JSON.parse(stdout) as Status;
    expect(server).toMatchObject({ ready: false, version: null, problem: expect.stringMatching(problem) });
    expect(counts).not.toBe(null);
  });

  it('reports a finding of the doctor, and how to fix it', async () => {
    const { code, stdout } = await pua({ ...environment, TRUST_PROXY: '1' }, ['status']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^findings +1\nwarn proxy: [^\n]+\n +→ set TRUST_PROXY=0/m);
  });

  it('reports the server’s state even if the database is unavailable', async () => {
    const DATABASE_URL = 'postgres://postgres@127.0.0.1:1/x';
    const { code, stdout } = await pua({ ...environment, DATABASE_URL }, ['status', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      healthy: false,
      server: { ready: true },
      counts: null,
      findings: [{ name: 'database', status: 'fail' }],
    });
  });
});

describe('pua open', () => {
  it('prints a page’s URL even if the database is unavailable, and rejects an unknown page', async () => {
    const away = { ...environment, DATABASE_URL: 'postgres://postgres@127.0.0.1:1/x' };
    expect(await pua(away, ['open', 'docs'])).toMatchObject({
      code: 0,
      stdout: `${environment.PUBLIC_URL}/docs\n`,
    });
    expect((await pua(away, ['open'])).stdout).toBe(`${environment.PUBLIC_URL}/\n`);
    expect((await pua(away, ['open', 'nowhere'])).code).toBe(2);
  });

  it('prints URLs of pages that respond without an error', async () => {
    for (const page of ['front', 'docs', 'openapi', 'account', 'activity']) {
      const { address } = await puaJson<{ address: string }>(environment, ['open', page]);
      const { status } = await fetch(address, { redirect: 'manual' });
      expect([page, status < 400]).toEqual([page, true]);
    }
  });

  postgres.it('opens the page on a desktop only if the output is a terminal', () => {
    const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'desktop-'));
    const [program, opened] = [join(folder, 'xdg-open'), join(folder, 'opened')];
    // The pipe's reader waits until the started program has written into it.
    execFileSync('mkfifo', [opened]);
    writeFileSync(program, `#!/bin/sh\necho "$1" > '${opened}'\n`);
    chmodSync(program, 0o755);
    const line = `'${process.execPath}' bin/pua.mjs open docs`;
    const env = { ...PROCESS, ...environment, PATH: `${folder}:${PROCESS.PATH}`, SHELL: '/bin/sh' };
    const onDesktop = execFileSync('sh', ['-c', `script -qec "${line}" /dev/null; cat '${opened}'`], {
      env: { ...env, DISPLAY: ':0' },
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(onDesktop.replaceAll('\r', '')).toBe(`${environment.PUBLIC_URL}/docs\n`.repeat(2));
    const elsewhere = execFileSync('sh', ['-c', line], { env: { ...env, DISPLAY: ':0' }, encoding: 'utf8' });
    expect(elsewhere).toBe(`${environment.PUBLIC_URL}/docs\n`); // without a reader, opening the pipe would block
  });
});

describe('shell completion', () => {
  const next = async (...words: string[]) => {
    const { code, stdout, stderr } = await pua(environment, ['__complete', ...words]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout.split('\n').flatMap((line) => line.split('\t')[0] || []);
  };

  it('completes commands, their options, and the options’ values', async () => {
    expect(await next('cl')).toEqual(['clients']);
    expect(await next('keys', 're')).toEqual(['revoke']);
    expect(await next('keys', 'create', '--no')).toEqual(['--no-expiry']);
    expect(await next('keys', 'create', '--env', '')).toEqual(['live', 'test']);
    expect(await next('audit', '--type', 'webhook.di')).toEqual(['webhook.disabled']);
    expect(await next('open', 'doc')).toEqual(['docs']);
  });

  it('completes the last of several scopes, and a message type', async () => {
    expect(await next('keys', 'create', '--scopes', 'profile:read,p')).toEqual([
      'profile:read,profile:write',
      'profile:read,platform:read',
      'profile:read,platform:write',
    ]);
    expect(await next('clients', 'create', '--scopes', 'ev')).toEqual(['events:read']);
    expect(await next('webhooks', 'create', '--types', 'profile.')).toEqual(['profile.updated']);
  });

  it('completes members, keys and apps from the database', async () => {
    const id = await api.platform.user({ username: 'complete-me' });
    const key = await puaJson<{ id: string }>(
      environment,
      'keys create --user complete-me --name x --scopes'.split(' ').concat(''),
    );
    const app = await puaJson<{ client_id: string }>(
      environment,
      'clients create --name Calendar --type web --redirect-uri https://app.example/callback'.split(' '),
    );
    expect(id).toBeGreaterThan(0);
    expect(await next('users', 'show', 'complete')).toEqual(['complete-me']);
    expect(await next('keys', 'create', '--user', 'complete')).toEqual(['complete-me']);
    expect(await next('keys', 'revoke', key.id.slice(0, 6))).toEqual([key.id]);
    expect(await next('clients', 'update', app.client_id.slice(0, 8))).toEqual([app.client_id]);
    const { stdout } = await pua(environment, ['__complete', 'clients', 'show', app.client_id]);
    expect(stdout).toBe(`${app.client_id}\tCalendar\n`);
  });

  it('offers no name with a space or a shell’s special characters', async () => {
    for (const username of ['bad$(reboot)', 'bad;reboot', 'bad`x`', 'bad name', "bad'", 'bad>x', 'bad*'])
      await api.platform.user({ username });
    await api.platform.user({ username: 'bad.but-fine_ñ' });
    expect(await next('users', 'show', 'bad')).toEqual(['bad.but-fine_ñ']);
  });

  it('prints nothing if the database is unavailable or the command is unknown', async () => {
    const away = { ...environment, DATABASE_URL: 'postgres://postgres@127.0.0.1:1/x' };
    const nothing = { code: 0, stdout: '', stderr: '' };
    expect(await pua(away, ['__complete', 'users', 'show', ''])).toEqual(nothing);
    expect(await pua(environment, ['__complete', 'nothing', 'at', 'all'])).toEqual(nothing);
  });

  postgres.it('completes in bash, even after the colon of a scope', () => {
    const bin = mkdtempSync(join(process.env.TEST_FOLDER!, 'bash-'));
    writeFileSync(
      join(bin, 'pua'),
      `#!/bin/sh\nexec '${process.execPath}' '${join(process.cwd(), 'bin/pua.mjs')}' "$@"\n`,
    );
    chmodSync(join(bin, 'pua'), 0o755);
    const script = `
      eval "$(pua completion bash)"
      COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
      reply() { COMP_LINE=$1 COMP_POINT=\${#1}; _pua; echo "\${COMPREPLY[@]}"; }
      reply 'pua key'
      reply 'pua clients '
      reply 'pua keys create --scopes profile:read,profile:w'
      complete -p pua`;
    const shown = execFileSync('bash', ['--norc', '-c', script], {
      env: { ...PROCESS, ...environment, PATH: `${bin}:${PROCESS.PATH}` },
      encoding: 'utf8',
    });
    expect(shown.split('\n').slice(0, 4)).toEqual([
      'keys',
      'create list show update rotate-secret review approve reject delete disable enable',
      'write',
      'complete -o default -F _pua pua',
    ]);
  });
});
