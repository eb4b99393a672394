// Resource usage of processes, from /proc (Linux).
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const TICK_MICROSECONDS = 1e6 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** CPU time of a process and all its descendants, including those that ended and were waited for. */
export function cpuMicroseconds(pid) {
  let ticks = 0;
  for (const one of tree(pid)) {
    const stat = readIfThere(`/proc/${one}/stat`);
    // After the name, which may contain anything: state is field 0, utime 11, stime 12, and of children that ended 13, 14.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    for (const at of [11, 12, 13, 14]) ticks += Number(fields[at] ?? 0);
  }
  return ticks * TICK_MICROSECONDS;
}

/** CPU time of the entire host, used and available, since its start. */
export function machineMicroseconds() {
  const [, ...fields] = readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/);
  const [user, nice, system, idle, iowait, irq, softirq, steal] = fields.map(
    (ticks) => Number(ticks) * TICK_MICROSECONDS,
  );
  const busy = user + nice + system + irq + softirq + steal;
  return { busy, all: busy + idle + iowait };
}

/** Resident memory of a process and all its descendants. */
export function memoryMegabytes(pid) {
  let kilobytes = 0;
  for (const one of tree(pid))
    kilobytes += Number(/VmRSS:\s+(\d+)/.exec(readIfThere(`/proc/${one}/status`))?.[1] ?? 0);
  return kilobytes / 1024;
}

function tree(pid) {
  const children = readIfThere(`/proc/${pid}/task/${pid}/children`).trim();
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => tree(Number(child))))];
}

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
