import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Deadline for a package registry, in milliseconds. */
export const REGISTRY_MS = 240_000;

/**
 * Makes a Python virtual environment in a folder.
 *
 * @param requirements file with what to install, by version and hash
 * @returns the folder of its programs, `python` among them
 */
export async function makePython(folder: string, requirements: string): Promise<string> {
  const programs = join(folder, 'venv/bin');
  await run('python3', ['-m', 'venv', join(folder, 'venv')]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--require-hashes', '--only-binary', ':all:', '-r'];
  await run(join(programs, 'python'), [...pip, requirements], { timeout: REGISTRY_MS });
  return programs;
}
