import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';
import { pua, PROCESS } from '../support/command-line.js';
import { postgres } from '../support/database.js';

/** Typed up to a tab → what the shell then shows. */
const CASES: readonly (readonly [typed: string, shown: RegExp])[] = [
  ['pua keys rot', /pua keys rotate/],
  ['pua users up', /pua users update/],
  ['pua keys create --cid', /pua keys create --cidr/],
  ['pua keys create --env t', /pua keys create --env test/],
  ['pua clients create --name x --type nat', /--type native/],
  ['pua audit --type sign_in.ref', /sign_in\.refused/],
  ['pua import expo', /pua import export/],
  ['pua completion fi', /pua completion fish/],
];

it.each(['bash', 'zsh', 'fish'])('pua completion prints a script for %s', async (shell) => {
  const { code, stdout, stderr } = await pua({}, ['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/\bpua\b/);
});

// With Debian's shells: with the tests on PostgreSQL, for which .ci/run installs them.
postgres.describe('completion', () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'completion-'));
    writeFileSync(join(folder, 'export'), '');
    for (const shell of ['bash', 'zsh', 'fish'])
      writeFileSync(join(folder, `pua.${shell}`), (await pua({}, ['completion', shell])).stdout);
  });

  /** Types into a shell on a terminal, each line when the one before is seen to be done. @returns what the last one showed */
  async function type(shell: string, begin: string, typed: string, shown: RegExp): Promise<string> {
    const child = spawn('script', ['-qec', `stty cols 200; ${shell}`, '/dev/null'], {
      cwd: folder,
      env: {
        PATH: PROCESS.PATH,
        HOME: folder,
        ZDOTDIR: folder,
        TERM: 'xterm',
        SHELL: '/bin/sh',
        LC_ALL: 'C.UTF-8',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
      timeout: 110_000,
      killSignal: 'SIGKILL',
    });
    let screen = '';
    // The bell too.
    const visible = () => stripVTControlCharacters(screen).replace(/\p{Cc}/gu, '');
    const until = (text: RegExp) =>
      new Promise<void>((resolve, reject) => {
        const look = () => {
          if (!text.test(visible())) return;
          child.stdout.off('data', look);
          resolve();
        };
        child.stdout.on('data', look);
        child.once('close', () => reject(new Error(`${shell} ended: ${visible()}`)));
        look();
      });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (screen += chunk));
    const ended = once(child, 'close');
    try {
      child.stdin.write(`${begin}; echo RE''ADY\r`);
      await until(/READY/);
      screen = '';
      child.stdin.write(`${typed}\t`);
      await until(shown);
      return visible();
    } finally {
      child.kill('SIGKILL');
      child.stdin.destroy();
      await ended;
    }
  }

  it.each(CASES)(
    'in bash: %s',
    async (typed, shown) => {
      expect(await type('bash --norc --noprofile -i', 'source ./pua.bash', typed, shown)).toMatch(shown);
    },
    120_000,
  );

  it.each(CASES)(
    'in zsh: %s',
    async (typed, shown) => {
      const begin = 'autoload -U compinit; compinit -u -D; source ./pua.zsh';
      expect(await type('zsh -f -i', begin, typed, shown)).toMatch(shown);
    },
    120_000,
  );

  it.each(CASES)(
    'in fish: %s',
    async (typed, shown) => {
      const script = `source ./pua.fish; complete -C ${JSON.stringify(typed)}`;
      const child = spawn('fish', ['--no-config', '-c', script], {
        cwd: folder,
        env: { PATH: PROCESS.PATH, HOME: folder },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let found = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => (found += chunk));
      await once(child, 'close');
      const words = found.split('\n').map((line) => typed.replace(/\S+$/, line.split('\t')[0]!));
      expect(words).toContainEqual(expect.stringMatching(shown));
    },
    120_000,
  );
});
