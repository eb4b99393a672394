import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, watch, type FSWatcher } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { PROCESS } from '../support/command-line.js';
import { postgres } from '../support/database.js';

describe('the temporary folder', () => {
  it('is the run’s own, for tests and for the programs that they start', async () => {
    expect(tmpdir()).toBe(process.env.TEST_FOLDER);
    const child = spawn(process.execPath, ['-p', 'os.tmpdir()'], { env: PROCESS });
    expect((await text(child.stdout)).trim()).toBe(process.env.TEST_FOLDER);
  });
});

// Runs in the run: not for every `npm test`.
postgres.describe('a run of the tests', () => {
  let folder: string;
  let watcher: FSWatcher;
  /** What the run has made in its temporary folder, whether it is there still or not. */
  let made: Set<string>;
  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), 'run-')), 'tmp');
    mkdirSync(folder);
    made = new Set();
    watcher = watch(folder, (_, name) => made.add(name!));
  });
  afterEach(() => watcher.close());

  const start = (files: string) =>
    spawn(process.execPath, ['node_modules/jest/bin/jest.js', files, '--cacheDirectory', `${folder}.cache`], {
      env: { PATH: process.env.PATH, TMPDIR: folder, CI: 'true' },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true, // a group of processes, as a shell starts one
    });

  /** The compiler loads itself from there while another process tidies its cache in the home folder. */
  const isOurs = (name: string) => !name.startsWith('swc-native-');

  const expectNothing = () => {
    expect([...made].filter(isOurs)).toEqual([expect.stringMatching(/^pua-test-/)]);
    // The folder in memory is named after the other.
    for (const name of made) expect(existsSync(join('/dev/shm', name))).toBe(false);
    expect(readdirSync(folder).filter(isOurs)).toEqual([]);
  };

  it('leaves nothing behind when it has ended', async () => {
    const run = start('src/site/highlight');
    const [said, [code]] = await Promise.all([text(run.stderr), once(run, 'close')]);
    expect([code, said]).toEqual([0, expect.stringContaining('1 passed')]);
    expectNothing();
  });

  it('leaves nothing behind when it is interrupted', async () => {
    const run = start('test/api');
    run.stderr.resume();
    const ended = once(run, 'close');
    await once(watcher, 'change');
    process.kill(-run.pid!, 'SIGINT');
    expect(await ended).toEqual([null, 'SIGINT']);
    expectNothing();
  });
});
