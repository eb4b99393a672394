// On SIGTERM, npm 11 exits without forwarding it to the program that it started, which would keep port and database. So a program
// started by npm or npx ends itself as soon as npm is gone; one that was started directly does not.
import { readFileSync } from 'node:fs';

const POLL_MS = 1_000;
const SHELL = /^-?(ba|da|k|z)?sh$/;

/**
 * The processes above this one up to npm: its parent, or the shell in between and that shell's parent. If a parent dies, the system
 * gives its child another one.
 */
function chain() {
  const parent = process.ppid;
  try {
    const [, name, rest] = /^\d+ \((.*)\) \S (.*)$/s.exec(readFileSync(`/proc/${parent}/stat`, 'utf8'));
    return SHELL.test(name) ? `${parent} ${rest.split(' ')[0]}` : `${parent}`;
  } catch {
    return `${parent}`; // not Linux: there, shells are replaced by the program
  }
}

if (process.env.npm_lifecycle_event !== undefined || process.env.npm_command !== undefined) {
  const before = chain();
  setInterval(() => {
    if (chain() !== before) process.kill(process.pid, 'SIGTERM');
  }, POLL_MS).unref();
}
