// Acquires the lock of the data folder argv[2] repeatedly, and checks that no other process holds it: a file in the folder with the pid
// is created after acquiring the lock and deleted before releasing it. One time in eight, it kills itself while it holds the lock.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { takeEmbeddedLock } from '../../dist/src/database/embedded/lock.js';

const dataDir = process.argv[2];
const mark = join(dataDir, 'mark');

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (let times = 0; times < 12; times++) {
  const unlock = await takeEmbeddedLock(dataDir, async () => false);
  try {
    writeFileSync(mark, String(process.pid), { flag: 'wx' });
  } catch {
    const other = Number(readFileSync(mark, 'utf8'));
    if (isAlive(other)) throw new Error(`${process.pid} and ${other} hold it`);
    writeFileSync(mark, String(process.pid)); // left by a process that was killed
  }
  await setTimeout(Math.random() * 3);
  if (Math.random() < 0.125) process.kill(process.pid, 'SIGKILL');
  if (readFileSync(mark, 'utf8') !== String(process.pid)) throw new Error(`${process.pid} is not alone`);
  rmSync(mark);
  unlock();
}
