// On SIGTERM, npm 11 exits without forwarding the signal to its program, which would keep the port and the database. So a program that npm
// or npx started exits when npm does.
import { readFileSync } from 'node:fs';

const POLL_MS = 1_000;
const SHELL = /^-?(ba|da|k|z)?sh$/;

/**
 * Returns this process's ancestors up to npm: npm, or a shell and npm. If a parent exits, the system assigns another parent.
 */
function chain() {
  const parent = process.ppid;
  try {
    const [, name, rest] = /^\d+ \((.*)\) \S (.*)$/s.exec(readFileSync(`/proc/${parent}/stat`, 'utf8'));
    return SHELL.test(name) ? `${parent} ${rest.split(' ')[0]}` : `${parent}`;
  } catch {
    return `${parent}`; // not Linux: on other systems, the program replaces the shell
  }
}

if (process.env.npm_lifecycle_event !== undefined || process.env.npm_command !== undefined) {
  const before = chain();
  setInterval(() => {
    if (chain() !== before) process.kill(process.pid, 'SIGTERM');
  }, POLL_MS).unref();
}
