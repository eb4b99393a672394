#!/usr/bin/env node
// Checks a running server's OpenAPI document by the recommended rules of Redocly and Spectral; warnings fail, too. Downloads both, in fixed
// versions, because they depend on hundreds of packages that nothing else needs.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const REDOCLY = '@redocly/cli@2.77.0';
const SPECTRAL = '@stoplight/spectral-cli@6.16.3';

const folder = mkdtempSync(join(tmpdir(), 'pua-openapi-'));
const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port: free } = probe.address();
    probe.close(() => resolve(free));
  });
});
const server = spawn(join(import.meta.dirname, '../node_modules/.bin/node'), ['bin/start.mjs'], {
  cwd: join(import.meta.dirname, '..'),
  env: {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATA_DIR: join(folder, 'data'),
    PORT: String(port),
    PUBLIC_URL: 'https://api.platform.test', // a loopback URL would be a finding
    LOG_LEVEL: 'warn',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});
try {
  const document = join(folder, 'openapi.json');
  writeFileSync(document, await read(`http://127.0.0.1:${port}/api/public/openapi.json`));
  writeFileSync(join(folder, '.spectral.json'), JSON.stringify({ extends: ['spectral:oas'] }));
  const { totals } = JSON.parse(
    npx(REDOCLY, ['redocly', 'lint', document, '--format=json', '--extends=recommended']),
  );
  if (totals.errors + totals.warnings > 0)
    throw new Error(
      npx(REDOCLY, ['redocly', 'lint', document, '--extends=recommended', '--format=codeframe']),
    );
  npx(SPECTRAL, [
    'spectral',
    'lint',
    document,
    '--fail-severity=hint',
    '--ruleset',
    join(folder, '.spectral.json'),
  ]);
  console.log('Nothing is found in the OpenAPI document, by Redocly or by Spectral.');
} catch (error) {
  console.error(error.stdout?.toString() || error.message);
  process.exitCode = 1;
} finally {
  server.kill('SIGTERM');
  await new Promise((resolve) => server.once('exit', resolve));
  rmSync(folder, { recursive: true, force: true });
}

function npx(name, command) {
  return execFileSync('npx', ['--yes', '--package', name, '--', ...command], {
    cwd: folder,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
}

/** The document, as soon as the server is ready. */
async function read(url) {
  for (let tries = 0; tries < 600; tries++) {
    if (server.exitCode !== null) throw new Error('The server ended before it was ready');
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return response.text();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error('The server was not ready within two minutes');
}
