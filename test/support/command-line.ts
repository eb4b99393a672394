import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll } from '@jest/globals';

/** Environment for child processes. There are many, so compiled code is cached. */
export const PROCESS = {
  PATH: process.env.PATH,
  TMPDIR: process.env.TMPDIR,
  NODE_COMPILE_CACHE: join(process.env.TEST_FOLDER!, 'compiled'),
};

export interface Ended {
  /** 0: success, 1: failure, 2: usage error. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const HOST = Symbol.for('process that runs pua');
const kept = globalThis as { [HOST]?: ChildProcess | undefined };
let last: Promise<unknown> = Promise.resolve();
let isBusy = false;
/** A command that a test abandoned may still run, so the next file uses another process. */
afterAll(() => {
  if (isBusy) kept[HOST]?.kill();
});

/** One process for all files of a worker, which ends with the worker: starting another takes nearly a second. */
function host(): ChildProcess {
  if (!kept[HOST]?.connected || kept[HOST].killed) {
    kept[HOST] = fork(join(import.meta.dirname, 'pua-host.mjs'), {
      cwd: process.env.TEST_FOLDER!, // a folder without .env
      env: PROCESS,
      execArgv: [],
    });
    kept[HOST].unref();
    kept[HOST].channel!.unref();
  }
  return kept[HOST];
}

/** A command line: its words, or one string if no word contains a space. */
export type Words = string | readonly string[];
const wordsOf = (args: Words) => (typeof args === 'string' ? (args.match(/\S+/g) ?? []) : args);

/** Runs the built `pua` in a process that has loaded it, one command after the other, without this process's environment. */
export function pua(environment: Readonly<Record<string, string>>, args: Words, stdin = ''): Promise<Ended> {
  const ended = last.then(async () => {
    const child = host();
    isBusy = true;
    child.channel!.ref();
    child.send({ environment, args: wordsOf(args), stdin });
    const [answer] = (await once(child, 'message')) as [Ended];
    child.channel!.unref();
    isBusy = false;
    return answer;
  });
  last = ended;
  return ended;
}

/** Starts `pua` of the tree `root` in its own process, as a shell does; the caller reads its output and ends it. */
export function startPua(environment: Readonly<Record<string, string>>, args: Words, root = process.cwd()) {
  // Like `npm test` itself: an embedded database for one command is not worth optimizing.
  return spawn(process.execPath, ['--liftoff-only', join(root, 'bin/pua.mjs'), ...wordsOf(args)], {
    cwd: process.env.TEST_FOLDER,
    env: { ...PROCESS, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs `pua` in its own process, as a shell does. */
export async function puaProcess(
  environment: Readonly<Record<string, string>>,
  args: Words,
  root?: string,
): Promise<Ended> {
  const child = startPua(environment, args, root);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Runs a command that must succeed, with `--json`. @returns its output */
export async function puaJson<T>(
  environment: Readonly<Record<string, string>>,
  args: Words,
  stdin = '',
): Promise<T> {
  const { code, stdout, stderr } = await pua(environment, [...wordsOf(args), '--json'], stdin);
  if (code !== 0) throw new Error(`pua ${wordsOf(args).join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}
