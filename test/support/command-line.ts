import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** What a process of ours gets of this one's environment. There are many of them: what was compiled is kept. */
export const PROCESS = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: join(process.env.TEST_FOLDER!, 'compiled'),
};

export interface Ended {
  /** 0 done, 1 failed, 2 wrong use. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `pua` as a shell does, as a process of its own. Nothing of this process's environment is passed on. */
export async function pua(
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
  stdin = '',
): Promise<Ended> {
  const child = spawn(process.execPath, [join(process.cwd(), 'bin/pua.mjs'), ...args], {
    cwd: process.env.TEST_FOLDER, // no .env here
    env: { ...PROCESS, ...environment },
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  child.stdin.on('error', () => undefined); // it may end without reading
  child.stdin.end(stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, ...output };
}

/** What a command that must succeed prints with `--json`. */
export async function puaJson<T>(
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
  stdin = '',
): Promise<T> {
  const { code, stdout, stderr } = await pua(environment, [...args, '--json'], stdin);
  if (code !== 0) throw new Error(`pua ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}
