import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What a registry is given to answer in, in milliseconds. */
export const REGISTRY_MS = 240_000;

/**
 * Makes a virtual environment of Python in a folder.
 *
 * @param requirements file that names what is installed into it, by version and hash
 * @returns the folder of its programs, `python` among them
 */
export async function makePython(folder: string, requirements: string): Promise<string> {
  const programs = join(folder, 'venv/bin');
  await run('python3', ['-m', 'venv', join(folder, 'venv')]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--require-hashes', '--only-binary', ':all:', '-r'];
  await run(join(programs, 'python'), [...pip, requirements], { timeout: REGISTRY_MS });
  return programs;
}
