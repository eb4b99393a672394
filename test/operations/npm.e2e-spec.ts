import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { embeddedLock } from '../../src/database/embedded/lock.js';
import { postgres } from '../support/database.js';
import { until } from '../support/timing.js';
import { freePort } from '../support/oauth.js';

// Always on the embedded database; starts processes, so not for every `npm test`.
postgres.describe('a program started by npm', () => {
  let folder: string;
  let lock: string;
  let url: string;
  let environment: Record<string, string>;
  let npm: ChildProcess;
  let printed: string;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-npm-'));
    lock = embeddedLock(folder);
    const PORT = String(await freePort());
    url = `http://127.0.0.1:${PORT}`;
    environment = { PATH: process.env.PATH!, HOME: folder, DATA_DIR: folder, PORT, SEED_DEMO: 'false' };
    printed = '';
  });
  afterEach(() => {
    try {
      process.kill(-npm.pid!, 'SIGKILL'); // any remaining processes
    } catch {
      // none remains
    }
    rmSync(folder, { recursive: true, force: true });
  });

  /** In a new process group, as a shell starts it. */
  function start(command: string, parameters: string[]): void {
    npm = spawn(command, parameters, { env: environment, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [npm.stdout!, npm.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
  }
  const answers = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const holder = () => Number.parseInt(readdirSync(lock)[0] ?? '', 10);
  const lives = (pid: number) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  it.each([
    ['SIGTERM ends only npm', 'SIGTERM', () => npm.pid!],
    ['SIGKILL ends only npm', 'SIGKILL', () => npm.pid!],
    ['Ctrl-C reaches its complete process group', 'SIGINT', () => -npm.pid!],
  ] as const)(
    'ends without a stack trace, and frees port and database, when %s',
    async (_, signal, target) => {
      start('npm', ['start']);
      await until(answers, 'it does not serve');
      const server = holder();
      process.kill(target(), signal);
      await once(npm, 'exit');
      await until(() => !lives(server), 'it lives on');
      expect(await answers()).toBe(false);
      expect(readdirSync(lock)).toEqual([]);
      expect(printed).not.toMatch(/\n +at /);
    },
  );

  it('ends when npx gets SIGTERM during a long command', async () => {
    const users = join(folder, 'users.ndjson');
    execFileSync('mkfifo', [users]); // a file that never ends
    start('npx', ['pua', 'import', folder]);
    const input = await open(users, 'w'); // the program reads the file now
    const command = holder();
    npm.kill('SIGTERM');
    await until(() => !lives(command), 'it lives on');
    expect(lives(command)).toBe(false);
    await input.close();
  });
});
