// The program of the previous released commit, installed from its own lock file, for the upgrade benchmark.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** 1.1.0. Replace it with each release. */
export const RELEASED = '7df4f8477e31076526bef25ae9eaeb09aef05b85';
const root = join(import.meta.dirname, '..');

/** Whether this clone has the commit: a shallow clone may lack it. */
export const hasCommit = (commit) =>
  spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).status === 0;

/** Installs a commit below `bench/.data`, unless it exists. @returns {string} its folder */
export function installReleased(commit = RELEASED) {
  const tree = join(root, 'bench/.data', `released-${commit.slice(0, 8)}`);
  if (existsSync(join(tree, 'dist'))) return tree;
  console.error(`Installing ${commit} …`);
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  const { stdout: input } = spawnSync('git', ['archive', commit], { cwd: root, maxBuffer: 1e9 });
  spawnSync('tar', ['x'], { cwd: tree, input, maxBuffer: 1e9 });
  const installing = ['ci', '--no-audit', '--no-fund'];
  const { status, stderr } = spawnSync('npm', installing, { cwd: tree, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ci of ${commit}: ${stderr}`);
  return tree;
}
