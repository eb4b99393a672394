// Sign-ins per second by each method, at the account pages: `npm run build && node bench/sign-ins.mjs`. One server over its own
// PostgreSQL; for the platform's own login, a provider that only signs. The best of several rounds, and the server's CPU time for
// each, which a busy machine affects little.
import './own-node.mjs';
import { spawn } from 'node:child_process';
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, SignJWT } from 'jose';
import { startPostgres } from '../bin/postgres.mjs';
import { cpuMicroseconds } from './usage.mjs';

const ROUNDS = 3;
const AT_ONCE = 4;
const MEMBERS = 64;
const PASSWORD = 'correct horse battery staple';
const PORT = 13_100;
const URL_HERE = `http://localhost:${PORT}`;
const ISSUER = `http://127.0.0.1:${PORT + 1}`;
/** Sign-ins per round. */
const COUNTS = { password: 64, passkey: 512, upstream: 512 };

const { loadConfig } = await import('../dist/src/config/config.js');
const { createDataSource } = await import('../dist/src/database/postgres/data-source.js');
const { migrate } = await import('../dist/src/database/schema/migrate.js');
const { hashPassword } = await import('../dist/src/accounts/passwords/passwords.js');

const folder = mkdtempSync(join(tmpdir(), 'pua-bench-'));
const cluster = await startPostgres(folder, { fsync: 'off' });
const environment = {
  NODE_ENV: 'test',
  DATABASE_URL: cluster.url,
  SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  PUBLIC_URL: URL_HERE,
  PORT: String(PORT),
  HOST: '127.0.0.1',
  LOG_LEVEL: 'silent',
  RATE_LIMIT_AUTH: '0',
  UPSTREAM_ISSUER: ISSUER,
  UPSTREAM_CLIENT_ID: 'bench',
  UPSTREAM_CLIENT_SECRET: 'bench',
};
const provider = await startProvider();
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
await prepare();
const server = spawn(process.execPath, ['dist/src/main.js'], {
  env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
  stdio: ['ignore', 'ignore', 'inherit'],
});
try {
  while (!(await fetch(`${URL_HERE}/readyz`).catch(() => undefined))?.ok)
    await new Promise((resolve) => setTimeout(resolve, 100));
  for (const [way, signIn] of Object.entries({ password, passkey, upstream })) {
    let best = { perSecond: 0, cpu: Number.POSITIVE_INFINITY };
    for (let round = 0; round <= ROUNDS; round++) {
      const [startedAt, cpu] = [performance.now(), cpuMicroseconds(server.pid)];
      await inParallel(COUNTS[way], (i) => signIn((i % MEMBERS) + 1));
      if (round === 0) continue; // warm-up
      best = {
        perSecond: Math.max(best.perSecond, (COUNTS[way] * 1000) / (performance.now() - startedAt)),
        cpu: Math.min(best.cpu, (cpuMicroseconds(server.pid) - cpu) / COUNTS[way]),
      };
    }
    console.log(
      `${way}: ${best.perSecond.toFixed(0)} sign-ins/s, ${(best.cpu / 1000).toFixed(2)} ms CPU each`,
    );
  }
} finally {
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill();
  await ended;
  provider.close();
  await cluster.stop();
  rmSync(folder, { recursive: true });
}

/** Makes members with a password, a passkey (all with one key: verification costs the same) and a name at the provider. */
async function prepare() {
  const dataSource = await createDataSource(loadConfig(environment), 'maintenance').initialize();
  await migrate(dataSource);
  const { x, y } = keys.publicKey.export({ format: 'jwk' });
  const bytes = (text) => Buffer.from(text, 'base64url').toString('hex');
  const cose = Buffer.from(`a5010203262001215820${bytes(x)}225820${bytes(y)}`, 'hex');
  await dataSource.query(
    `INSERT INTO users (id, username, password_hash, external_id)
     SELECT i, 'member_' || i, $1, 'sub-' || i FROM generate_series(1, $2::int) i`,
    [await hashPassword(PASSWORD), MEMBERS],
  );
  await dataSource.query(
    `INSERT INTO passkeys (user_id, credential_id, user_handle, public_key, sign_count, backup_eligible, backed_up, name)
     SELECT i, sha256(i::text::bytea), '\\x01', $1, 0, false, false, 'bench' FROM generate_series(1, $2::int) i`,
    [cose, MEMBERS],
  );
  await dataSource.destroy();
}

async function password(id) {
  const browser = await atSignIn();
  await browser.post('/account/apps/sign-in', { username: `member_${id}`, password: PASSWORD });
}

async function passkey(id) {
  const browser = await atSignIn();
  const { challenge } = await (await browser.post('/account/apps/passkey/options', {}, 200)).json();
  const data = Buffer.concat([sha256('localhost'), Buffer.from([0x05]), Buffer.alloc(4)]);
  const said = { type: 'webauthn.get', challenge, origin: URL_HERE, crossOrigin: false };
  const clientData = Buffer.from(JSON.stringify(said));
  const signature = sign('sha256', Buffer.concat([data, sha256(clientData)]), keys.privateKey);
  const response = {
    clientDataJSON: clientData,
    authenticatorData: data,
    signature,
    userHandle: Buffer.of(1),
  };
  const encoded = Object.entries(response).map(([name, value]) => [name, value.toString('base64url')]);
  const credential = JSON.stringify({
    id: sha256(String(id)).toString('base64url'),
    type: 'public-key',
    response: Object.fromEntries(encoded),
  });
  await browser.post('/account/apps/passkey', { credential });
}

async function upstream(id) {
  const begun = await fetch(`${URL_HERE}/account/apps/upstream`, { redirect: 'manual' });
  await begun.arrayBuffer();
  const asked = new URL(begun.headers.get('location')).searchParams;
  const query = new URLSearchParams({
    code: `${asked.get('nonce')}.sub-${id}`,
    state: asked.get('state'),
    iss: ISSUER,
  });
  const headers = { Cookie: cookiesOf(begun) };
  const back = await fetch(`${URL_HERE}/sign-in/callback?${query}`, { redirect: 'manual', headers });
  await expectStatus(back, 303);
}

async function atSignIn() {
  const page = await fetch(`${URL_HERE}/account/apps`);
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())[1];
  const headers = { Cookie: cookiesOf(page) };
  return {
    post: async (path, fields, status = 303) => {
      const body = new URLSearchParams({ csrf, ...fields });
      const answer = await fetch(URL_HERE + path, { method: 'POST', redirect: 'manual', headers, body });
      return expectStatus(answer, status);
    },
  };
}

async function expectStatus(answer, status) {
  if (answer.status !== status) throw new Error(`${answer.status} at ${answer.url}: ${await answer.text()}`);
  if (status === 303) await answer.arrayBuffer();
  return answer;
}

function cookiesOf(answer) {
  return answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
}

function sha256(data) {
  return createHash('sha256').update(data).digest();
}

async function inParallel(count, task) {
  let next = 0;
  const worker = async () => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Starts a provider that signs in the member named by the code. */
async function startProvider() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' };
  const metadata = {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
    jwks_uri: `${ISSUER}/jwks`,
    authorization_response_iss_parameter_supported: true,
    id_token_signing_alg_values_supported: ['ES256'],
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
  };
  const tokenFor = async (code) => {
    const [nonce, sub] = code.split('.');
    const token = new SignJWT({ nonce, auth_time: Math.floor(Date.now() / 1000) });
    const idToken = await token
      .setProtectedHeader({ alg: 'ES256', kid: 'bench' })
      .setIssuer(ISSUER)
      .setAudience('bench')
      .setSubject(sub)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(privateKey);
    const accessToken = randomBytes(16).toString('base64url');
    return { access_token: accessToken, token_type: 'Bearer', expires_in: 300, id_token: idToken };
  };
  const answer = async (request) => {
    if (request.url.startsWith('/.well-known/')) return metadata;
    if (request.url === '/jwks') return { keys: [jwk] };
    let body = '';
    for await (const chunk of request) body += chunk;
    return tokenFor(new URLSearchParams(body).get('code'));
  };
  const listening = createServer(async (request, response) => {
    const json = JSON.stringify(await answer(request));
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(json);
  });
  await new Promise((resolve) => listening.listen(PORT + 1, '127.0.0.1', resolve));
  return listening;
}
