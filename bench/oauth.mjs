// What the authorization servers are asked: sign-ins, authorizations, code exchanges, refreshes. A code and a refresh
// token can be used once, so a turn is not so many seconds but so many of them.
import pg from 'pg';
import { Browser, CLIENT_ID, exchange, REDIRECT_URI, refresh } from './oauth-client.mjs';
import { inTurns } from './measurements.mjs';
import { usage } from './load.mjs';
import { memoryMegabytes } from './usage.mjs';

/** Requests at a time. */
const AT_ONCE = 16;
/** Members whose codes are redeemed. */
const SIGNED_IN = 32;

const PASSWORD = 'correct horse battery staple';

/**
 * Registers the client, and gives the members who are asked for a password.
 *
 * @returns {Promise<{username: string, password: string, id: number}[]>}
 */
export async function prepareMembers(dataset) {
  const { hashPassword } = await import('../dist/src/accounts/passwords.js');
  const { ALL_SCOPES } = await import('../dist/src/auth/scopes.js');
  const database = new pg.Client(dataset.url);
  await database.connect();
  await database.query(
    `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ($1, 'Benchmark', 'web', $2, $3)
     ON CONFLICT DO NOTHING`,
    [CLIENT_ID, [REDIRECT_URI], ALL_SCOPES],
  );
  const { rows } = await database.query(
    `UPDATE users SET password_hash = $1 WHERE id IN (SELECT user_id FROM api_keys) RETURNING id::int, username`,
    [await hashPassword(PASSWORD)],
  );
  await database.end();
  return rows.map((row) => ({ ...row, password: PASSWORD }));
}

/** Signs members in, each in a browser of its own. @returns the turn, the browsers, and the access tokens */
export async function signIn(server, members, dataset) {
  const browsers = members.map(() => new Browser(server));
  const { turn, results: codes } = await timed(server, dataset, members, (member, i) =>
    browsers[i].authorize(member),
  );
  const tokens = [];
  for (const code of codes) tokens.push((await exchange(server, code)).access_token);
  return { turn, browsers, tokens };
}

/**
 * Code exchange and refresh on each server in turn, and what an authorization of a member costs who is signed in and has
 * allowed it before.
 *
 * @returns {Promise<{question: string, results: Map<string, import('./measurements.mjs').Result>}[]>}
 */
export async function measureOauth(servers, members, dataset, { rounds, count }) {
  const signedIn = [];
  for (const server of servers) {
    // The development pages of the bare library take the id for the name.
    const some = members
      .slice(0, SIGNED_IN)
      .map(({ id, ...member }) => (server.bare ? { ...member, username: String(id) } : member));
    signedIn.push({ name: server.name, server, ...(await signIn(server, some, dataset)) });
  }
  const questions = ['authorization', 'code exchange', 'refresh'];
  const turns = await inTurns(
    signedIn,
    { rounds, yardstick: servers.at(-1).name },
    async ({ server, browsers }) => {
      const wanted = Array.from({ length: count });
      const authorized = await timed(server, dataset, wanted, (_, i) =>
        browsers[i % browsers.length].authorize(),
      );
      const exchanged = await timed(server, dataset, authorized.results, (code) => exchange(server, code));
      const tokens = exchanged.results.map((answer) => answer.refresh_token);
      const refreshed = await timed(server, dataset, tokens, (token) => refresh(server, token));
      return [authorized.turn, exchanged.turn, refreshed.turn];
    },
  );
  return questions.map((question, i) => ({ question, results: turns[i] }));
}

/** Does `work` for all of `things`, some at a time. @returns the turn (see load.mjs), and what came of each */
async function timed(server, { postgresPid }, things, work) {
  const results = Array.from({ length: things.length });
  const latencies = [];
  let next = 0;
  const worker = async () => {
    while (next < things.length) {
      const i = next++;
      const began = performance.now();
      results[i] = await work(things[i], i);
      latencies.push(performance.now() - began);
    }
  };
  const before = usage(server.pid, postgresPid);
  const began = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const seconds = (performance.now() - began) / 1000;
  const after = usage(server.pid, postgresPid);
  const used = (what) => after[what] - before[what];
  latencies.sort((a, b) => a - b);
  const percentile = (part) => latencies[Math.floor(part * (latencies.length - 1))];
  const turn = {
    rate: things.length / seconds,
    p50: percentile(0.5),
    p99: percentile(0.99),
    serverCpu: used('server') / things.length,
    databaseCpu: used('database') / things.length,
    memory: memoryMegabytes(server.pid),
    failed: 0,
    others: Math.max(0, used('busy') - used('ours')) / used('all'),
  };
  return { turn, results };
}
