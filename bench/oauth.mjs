// Load on the authorization servers: sign-ins, authorizations, code exchanges, refreshes. A code or refresh token can be used once, so
// a turn has a fixed number of requests, not a fixed time.
import pg from 'pg';
import { Browser, CLIENT_ID, exchange, REDIRECT_URI, refresh } from './oauth-client.mjs';
import { inTurns } from './measurements.mjs';
import { meter } from './load.mjs';
import { bearer } from './questions.mjs';
import { NAIVE_PROVIDER } from './servers.mjs';

/** Requests of each kind per second of a turn. */
const REQUESTS = 600;
/** Concurrent requests at the token endpoint and at the authorization endpoint. */
const AT_ONCE = 16;
/** Each argon2 occupies one processor; with four at once both processors were idle for a tenth of the time. */
const SIGN_INS_AT_ONCE = 6;
/** Members whose codes are redeemed. */
const SIGNED_IN = 32;

const PASSWORD = 'correct horse battery staple';

/**
 * Registers the client, and sets a password for the benchmark's members.
 *
 * @returns {Promise<{username: string, password: string, id: number}[]>}
 */
export async function prepareMembers({ url, members }) {
  const { hashPassword } = await import('../dist/src/accounts/passwords/passwords.js');
  const { ALL_SCOPES } = await import('../dist/src/auth/scopes.js');
  const database = new pg.Client(url);
  await database.connect();
  await database.query(
    `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ($1, 'Benchmark', 'web', $2, $3)
     ON CONFLICT DO NOTHING`,
    [CLIENT_ID, [REDIRECT_URI], ALL_SCOPES],
  );
  // One hash for all: verification costs the same.
  await database.query('UPDATE users SET password_hash = $1 WHERE id = ANY ($2)', [
    await hashPassword(PASSWORD),
    members,
  ]);
  await database.end();
  return members.map((id) => ({ id, username: `member_${id}`, password: PASSWORD }));
}

/**
 * Signs members in, each in a separate browser, until the app has their tokens.
 *
 * @returns {Promise<{turn: import('./load.mjs').Turn, browsers: Browser[], tokens: import('./questions.mjs').Credential[]}>}
 * `tokens` has gaps for failed sign-ins
 */
export async function signIn(server, members) {
  const browsers = members.map(() => new Browser(server));
  const tokens = [];
  const turn = await meter(server, () =>
    generate(members.length, SIGN_INS_AT_ONCE, async (i) => {
      const code = await browsers[i].authorize(members[i]); // valid for a minute
      tokens[i] = bearer((await exchange(server, code)).access_token);
    }),
  );
  return { turn, browsers, tokens };
}

/**
 * Measures code exchange and refresh on each server in turn, and the authorization of a member who is signed in and has consented
 * before.
 *
 * @returns {Promise<Record<string, import('./measurements.mjs').Results>>} by the kind of request
 */
export async function compareOauth(servers, members, datasets, plan, yardstick = NAIVE_PROVIDER) {
  const candidates = [];
  for (const server of servers) {
    // The development pages of the bare library use the id as the name.
    const some = members
      .slice(0, SIGNED_IN)
      .map(({ id, ...member }) =>
        server.name === NAIVE_PROVIDER ? { ...member, username: String(id) } : member,
      );
    const { browsers } = await signIn(server, some);
    candidates.push({
      name: server.name,
      async turn(seconds) {
        const flow = new Flow(server, browsers, seconds * REQUESTS);
        return [await flow.authorize(), await flow.exchange(), await flow.refresh()];
      },
    });
  }
  for (const { turn } of candidates) await turn(1);
  for (const dataset of datasets) await analyze(dataset);
  const [authorization, exchanged, refreshed] = await inTurns(candidates, plan, yardstick);
  return { 'Authorization, signed in': authorization, 'Code exchange': exchanged, Refresh: refreshed };
}

/** Runs ANALYZE, as autovacuum does within a minute of use: until then, PostgreSQL plans for empty tables. */
async function analyze({ url }) {
  const database = new pg.Client(url);
  await database.connect();
  await database.query('ANALYZE');
  await database.end();
}

/** A set of codes, from their creation to the refresh of the tokens obtained with them. */
export class Flow {
  #codes = [];
  #refreshTokens = [];

  constructor(server, browsers, count) {
    Object.assign(this, { server, browsers, count });
  }

  authorize() {
    const { browsers } = this;
    return this.#meter(async (i) => {
      this.#codes[i] = await browsers[i % browsers.length].authorize();
    });
  }

  exchange() {
    return this.#meter(async (i) => {
      this.#refreshTokens[i] = (await exchange(this.server, this.#codes[i])).refresh_token;
    });
  }

  /** May be called again: each refresh yields the next token. */
  refresh() {
    return this.#meter(async (i) => {
      this.#refreshTokens[i] = (await refresh(this.server, this.#refreshTokens[i])).refresh_token;
    });
  }

  #meter(work) {
    return meter(this.server, () => generate(this.count, AT_ONCE, work));
  }
}

/**
 * Runs `work` `count` times, `atOnce` at a time; failures are counted.
 *
 * @param {(i: number) => Promise<void>} work
 * @returns {Promise<import('./load.mjs').Load>}
 */
async function generate(count, atOnce, work) {
  const latencies = [];
  let next = 0;
  let failed = 0;
  const worker = async () => {
    while (next < count) {
      const began = performance.now();
      await work(next++).catch((error) => {
        if (failed++ === 0) console.error(error.message);
      });
      latencies.push(1000 * (performance.now() - began));
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: atOnce }, worker));
  const microseconds = 1000 * (performance.now() - began);
  latencies.sort((a, b) => a - b);
  const percentile = (part) => latencies[Math.floor(part * (count - 1))];
  return { requests: count, microseconds, p50: percentile(0.5), p99: percentile(0.99), failed };
}
