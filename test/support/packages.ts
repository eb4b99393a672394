import { execFile } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Deadline for a package registry, in milliseconds. */
export const REGISTRY_MS = 900_000;

/** Installs npm packages into a folder. @param locked folder whose package-lock.json names them by version and hash */
export async function installPackages(folder: string, locked = folder): Promise<void> {
  if (locked !== folder)
    for (const file of ['package.json', 'package-lock.json'])
      copyFileSync(join(locked, file), join(folder, file));
  const options = ['--ignore-scripts', '--no-audit', '--no-fund'];
  await run('npm', ['ci', ...options], { cwd: folder, timeout: REGISTRY_MS });
}

/**
 * Makes a Python virtual environment in a folder.
 *
 * @param requirements file that lists the packages by version and hash
 * @returns the folder of its programs, `python` among them
 */
export async function makePython(folder: string, requirements: string): Promise<string> {
  const programs = join(folder, 'venv/bin');
  await run('python3', ['-m', 'venv', join(folder, 'venv')]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--require-hashes', '--only-binary', ':all:', '-r'];
  await run(join(programs, 'python'), [...pip, requirements], { timeout: REGISTRY_MS });
  return programs;
}

/**
 * Fetches the jars that the pom.xml of a folder names, and compares them with the hashes in its jars.sha256.
 *
 * @returns the folder of the jars
 */
export async function mavenJars(folder: string): Promise<string> {
  const jars = join(folder, 'jars');
  await run('mvn', ['-q', '-B', '-ntp', 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`], {
    cwd: folder,
    timeout: REGISTRY_MS,
  });
  await run('sha256sum', ['--check', '--strict', '--quiet', join(folder, 'jars.sha256')], { cwd: jars });
  return jars;
}
