#!/usr/bin/env node
// Does what a new user does: `npm ci && npm start`, the curl line as printed, Ctrl-C, `npm start` again. Runs only in a fresh clone.
import { execSync, spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';

for (const folder of ['node_modules', '.data'])
  if (existsSync(folder)) throw new Error(`this is no fresh clone: it has ${folder}`);
const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
const env = { ...process.env, PORT: String(port) };
for (const name of ['DATABASE_URL', 'DATA_DIR', 'SECRET_KEY', 'NODE_ENV', 'TEST_DATABASE_URL'])
  delete env[name];

/** Starts the server; resolves with its output when it is ready. */
function start() {
  const began = performance.now();
  const server = spawn('npm', ['start'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const { pid } = server;
  if (pid === undefined) throw new Error('npm cannot be started');
  let printed = '';
  const ready = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`not ready within 60 s:\n${printed}`)), 60_000);
    const read = (chunk) => {
      printed += chunk;
      if (!printed.includes('is ready.') || !printed.includes(`:${port}/api/public`)) return;
      clearTimeout(late);
      setImmediate(() => resolve({ printed, seconds: (performance.now() - began) / 1000 }));
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
    server.once('exit', () => reject(new Error(`ended before it was ready:\n${printed}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      server.removeAllListeners('exit');
      server.once('exit', resolve);
      process.kill(-pid, 'SIGTERM'); // signals npm and the server, as Ctrl-C in a terminal does
    });
  return { ready, stop: () => stop().then(portIsFree) };
}

/** npm may end before the server that it started. */
async function portIsFree() {
  for (let attempt = 0; attempt < 150; attempt++) {
    const answered = await fetch(`http://127.0.0.1:${port}/livez`).then(
      () => true,
      () => false,
    );
    if (!answered) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the server did not end within 15 s');
}

function expect(condition, message) {
  if (!condition) throw new Error(message);
}

/** Runs the printed command unchanged. */
function expectWorkingCurl(printed) {
  const curl = /^ +(export .*)\n +(curl .*)$/m.exec(printed)?.slice(1).join('\n');
  expect(curl, `no curl line is printed:\n${printed}`);
  const answer = execSync(`${curl} -s -w '\\n%{http_code}'`, { encoding: 'utf8' });
  expect(answer.endsWith('\n200'), `the printed curl line answers:\n${answer}`);
}

try {
  const installed = execSync('npm ci --no-audit --no-fund 2>&1', { env, encoding: 'utf8' });
  expect(!/warn (?!Unknown user config)/i.test(installed), `npm ci warns:\n${installed}`);

  const first = start();
  const { printed, seconds } = await first.ready;
  console.log(`first start: ready after ${seconds.toFixed(1)} s`);
  expect(
    !/warn/i.test(printed.replace(/^npm warn Unknown user config.*$/gm, '')),
    `npm start warns:\n${printed}`,
  );
  expectWorkingCurl(printed);
  await first.stop();

  const second = start();
  const again = await second.ready;
  console.log(`second start: ready after ${again.seconds.toFixed(1)} s`);
  expectWorkingCurl(again.printed);
  await second.stop();
} finally {
  rmSync('.data', { recursive: true, force: true });
}
