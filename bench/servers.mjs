// This server as in production, and the peers.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../bin/postgres.mjs';
import { ROUTES } from './peers/routes.mjs';
import { combined } from './peers/sql.mjs';

const folder = import.meta.dirname;
const root = join(folder, '..');

export const OURS = 'this server';
export const OURS_WITH_TOKEN = 'this server, access token';
/** The yardstick of the comparison. */
export const HANDWRITTEN = 'hand-written node:http + pg';
export const GO = 'Go net/http + pgx';
export const RUST = 'Rust axum + tokio-postgres';
export const NAIVE_PROVIDER = 'bare oidc-provider + naive adapter';

const GO_PEER = {
  language: 'Go 1.24',
  tool: 'go',
  version: 'version',
  build: ['build', '-o', 'peer', '.'],
  folder: 'peers/go',
};
/** `--locked`: fails unless the versions are those of its Cargo.lock. */
const RUST_PEER = {
  language: 'Rust 1.85',
  tool: 'cargo',
  version: '--version',
  build: ['build', '--release', '--locked', '--quiet'],
  folder: 'peers/rust',
};

/** Name, program, and preparation, which may exclude the peer; slowest last. */
export const PEERS = [
  { name: HANDWRITTEN, program: 'peers/hand-written.mjs' },
  { name: GO, program: 'peers/go/peer', prepare: () => compile(GO, GO_PEER) },
  { name: RUST, program: 'peers/rust/target/release/peer', prepare: () => compile(RUST, RUST_PEER) },
];

const LEFT_OUT = Symbol('left out');
const STATEMENTS = JSON.stringify(
  Object.fromEntries(Object.values(ROUTES).map(({ name, data }) => [name, combined(data)])),
);

/**
 * @typedef {{name: string, url: string, pid: number, postgresPid: number, stop: () => Promise<void>}} Server
 * @returns {Promise<Server[]>} this server first
 */
export async function startAll(dataset, peers) {
  const servers = [await startOurs(dataset)];
  for (const { name, program, prepare } of peers) {
    if (prepare?.() === LEFT_OUT) continue;
    servers.push(await start(name, join(folder, program), dataset, { PORT: await freePort() }));
  }
  return servers;
}

/** The image's Node flags and environment, with this folder's programs. */
export function containerSettings() {
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8').replaceAll('/app/', `${root}/`);
  const [, ...command] = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)[1]);
  const environment = [...dockerfile.matchAll(/^ENV (?!PATH=)(.*)$/gm)].flatMap(([, line]) =>
    line.split(' '),
  );
  return {
    flags: command.filter((word) => word.startsWith('-')),
    env: Object.fromEntries(environment.map((pair) => pair.split('='))),
  };
}

/**
 * Starts this server as the image does, with every feature enabled: credentials are validated, limits counted (the maximum is out of
 * reach), totals exact. Only the log line of each request is not written.
 */
export async function startOurs(dataset) {
  const port = await freePort();
  const { flags, env: environment } = containerSettings();
  const env = {
    ...environment,
    HOST: '127.0.0.1',
    PORT: port,
    PUBLIC_URL: `http://localhost:${port}`,
    DATA_DIR: join(folder, '.data/server'),
    LOG_LEVEL: 'warn',
    RATE_LIMIT_READ: 1_000_000,
    RATE_LIMIT_WRITE: 1_000_000,
    RATE_LIMIT_AUTH: 1_000_000,
  };
  return start(OURS, join(root, 'bin/server.mjs'), dataset, env, flags);
}

/** @returns {Promise<Server>} */
export async function startNaiveProvider(dataset) {
  return start(NAIVE_PROVIDER, join(folder, 'peers/oidc-naive.mjs'), dataset, { PORT: await freePort() });
}

async function start(name, program, { url: databaseUrl, secretKey, postgresPid }, env, nodeFlags = []) {
  const command = program.endsWith('js') ? [process.execPath, ...nodeFlags, program] : [program];
  const child = spawn(command[0], command.slice(1), {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      DATABASE_URL: databaseUrl,
      SECRET_KEY: secretKey,
      STATEMENTS, // for peers in other languages
      ...env,
    },
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface(child.stdout).on('line', console.error);
  const ended = new Promise((resolve) => child.once('close', resolve));
  const url = `http://127.0.0.1:${env.PORT}`;
  const deadline = Date.now() + 20_000;
  while (!(await answers(url))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${name} did not start`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    name,
    url,
    pid: child.pid,
    postgresPid,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function answers(url) {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

/**
 * Builds a peer in another language; the output is next to its source, and not in git.
 *
 * @param {string} name
 * @param {{language: string, tool: string, version: string, build: string[], folder: string}} peer
 */
function compile(name, { language, tool, version, build, folder: source }) {
  if (spawnSync(tool, [version]).error) {
    console.error(`NOT MEASURED: ${name}, which needs ${language} (${tool} is not installed).`);
    return LEFT_OUT;
  }
  const { status } = spawnSync(tool, build, { cwd: join(folder, source), stdio: 'inherit' });
  if (status !== 0) throw new Error(`${name} could not be built`);
  return undefined;
}
