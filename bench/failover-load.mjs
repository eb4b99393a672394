// Sends requests of members and a platform to servers whose database fails meanwhile (failover.mjs), and records the acknowledged requests.
import { Browser, exchange, refresh } from './oauth-client.mjs';

/** Requests of every kind to acknowledge before the next step, so that some requests are in progress. */
const BETWEEN = 5;
const AGAIN_MS = 50;
/** Pause after a response, so that the load leaves the cluster room on two cores. */
const THINKING_MS = 20;
/** Time after which the run is aborted; the documented interruption is shorter. */
const PATIENCE_MS = 120_000;
/** Age in ms beyond which the lost response of a used refresh token is not repeated. */
const LONG_USED_MS = 11_000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Writers count in their profiles, each number conditional on the last number; a platform feeds events; members sign in and refresh; and two
 * members read. Requests rejected with 503 are sent again.
 */
export class Load {
  acknowledged = { write: 0, feed: 0, 'sign-in': 0, refresh: 0, read: 0 };
  refused = 0;
  lost = 0;
  twice = 0;
  /** Descriptions of observed faults. */
  faults = [];
  /** Longest wait for a success in ms, by incident and kind of request. */
  gaps = [];
  #incidentAt;
  #ending = false;
  #codes = [];
  #chains;
  #over;
  /** Alternates between the servers, as browsers and apps do. */
  #anyServer;

  /**
   * @param {{url: string}[]} servers
   * @param {{
   *   writers: {id: string, key: string, version: number, n: number}[],
   *   feed: {key: string, organizer: string, ids: number[]},
   *   signingIn: {username: string, password: string}[],
   *   refreshing: {username: string, password: string}[],
   * }} callers: the next load starts with the state that the previous load has written
   * @param {(sql: string, values?: unknown[]) => Promise<object[]>} query on the primary
   */
  constructor(servers, callers, query) {
    this.servers = servers;
    this.callers = callers;
    this.query = query;
    let turn = 0;
    this.#anyServer = {
      name: 'a server',
      get url() {
        return servers[turn++ % servers.length].url;
      },
    };
    this.#chains = callers.refreshing.map((member) => ({ member, used: [], token: undefined }));
    this.#over = Promise.all([
      ...callers.writers.map((writer) => this.#write(writer)),
      this.#feed(callers.feed),
      ...callers.signingIn.map((member) => this.#signIn(member)),
      ...this.#chains.map((chain) => this.#refresh(chain)),
      ...servers.map((server) => this.#read(server, callers.writers[0].key)),
    ]);
    this.#over.catch(() => (this.#ending = true));
  }

  /** Waits until {@link BETWEEN} more requests of every kind, or of the named kinds, were acknowledged. */
  async everybody(when, kinds = Object.keys(this.acknowledged)) {
    const before = { ...this.acknowledged };
    for (const latest = performance.now() + PATIENCE_MS; ; await pause(20)) {
      const missing = kinds.filter((kind) => this.acknowledged[kind] < before[kind] + BETWEEN);
      if (missing.length === 0) return;
      if (this.#ending) await this.#over;
      if (performance.now() > latest) throw new Error(`no ${missing.join(', ')} ${when}`);
    }
  }

  beginIncident() {
    this.#incidentAt = performance.now();
    this.gaps.push(Object.fromEntries(Object.keys(this.acknowledged).map((kind) => [kind, 0])));
  }

  endIncident() {
    this.#incidentAt = undefined;
  }

  /** Ends the load, and compares the final state of the database and the servers with the acknowledged requests. */
  async end() {
    this.#ending = true;
    await this.#over;
    for (const writer of this.callers.writers) {
      const [{ bio, version }] = await this.query('SELECT bio, version FROM users WHERE id = $1', [
        writer.id,
      ]);
      this.#compareBio(writer, Number(bio ?? 0), true);
      if (Number(version) - writer.version !== writer.n)
        this.#fault('twice', `${writer.n} writes made ${version - writer.version} versions`);
    }
    const { ids } = this.callers.feed;
    const [{ missing }] = await this.query(
      'SELECT count(*)::int AS missing FROM unnest($1::bigint[]) AS fed (id) LEFT JOIN events USING (id) WHERE events.id IS NULL',
      [ids],
    );
    if (missing > 0) this.#fault('lost', `${missing} of ${ids.length} lines are lost`, missing);
    const twice = await this.query(
      `SELECT grant_id FROM oauth_tokens WHERE model = 'RefreshToken' AND consumed_at IS NULL GROUP BY grant_id HAVING count(*) > 1`,
    );
    if (twice.length > 0) this.#fault('twice', 'a sign-in has two refresh tokens', twice.length);
    for (const { tokens } of this.#codes) {
      const headers = { Authorization: `Bearer ${tokens.access_token}` };
      const status = await outcome(() => this.#ask(`${this.#anyServer.url}/api/public/me`, { headers }));
      if (status !== 200) this.#fault('lost', `the response to an issued token is ${status}`);
    }
    for (const { token, used } of this.#chains) {
      if (token !== undefined && (await outcome(() => refresh(this.#anyServer, token))) !== 200)
        this.#fault('lost', 'the server rejects an issued refresh token');
      const [first] = used;
      if (!first) continue;
      await pause(Math.max(0, first.at + LONG_USED_MS - performance.now()));
      const status = await outcome(() => refresh(this.#anyServer, first.token));
      if (status !== 400) this.#fault('twice', `the response to a used refresh token is ${status}`);
    }
    for (const { code } of this.#codes.slice(-20))
      if ((await outcome(() => exchange(this.#anyServer, code))) !== 400)
        this.#fault('twice', 'the server accepts a code twice');
  }

  #fault(kind, description, times = 1) {
    this[kind] += times;
    this.faults.push(description);
  }

  /** @param unknown whether the server may have applied one unacknowledged write (its response was 503) */
  #compareBio(writer, bio, unknown) {
    if (bio < writer.n)
      this.#fault('lost', `a member who was told of ${writer.n} writes has ${bio}`, writer.n - bio);
    else if (bio > writer.n + (unknown ? 1 : 0))
      this.#fault('twice', `a member who was told of ${writer.n} writes has ${bio}`, bio - writer.n);
    writer.n = bio;
  }

  /** @param caller has an `at` since its last response; undefined at first */
  #acknowledge(kind, caller) {
    const now = performance.now();
    this.acknowledged[kind]++;
    if (this.#incidentAt !== undefined) {
      const gaps = this.gaps.at(-1);
      gaps[kind] = Math.max(gaps[kind], now - Math.max(caller.at ?? 0, this.#incidentAt));
    }
    caller.at = now;
  }

  /** Writes numbers, each conditional on the last number, on alternating servers. */
  async #write(writer) {
    let etag;
    let unknown = false;
    const caller = {};
    while (!this.#ending) {
      const url = `${this.#anyServer.url}/api/public/profile`;
      const headers = { 'X-API-Key': writer.key, 'Content-Type': 'application/json' };
      if (etag === undefined) {
        const found = await this.#ask(url, { headers });
        if (found.status === 503) continue;
        if (found.status !== 200) throw new Error(`the response to a writing member is ${found.status}`);
        this.#compareBio(writer, Number(found.body.bio ?? 0), unknown);
        unknown = false;
        etag = found.headers.get('etag');
        continue;
      }
      const body = JSON.stringify({ bio: String(writer.n + 1) });
      const answer = await this.#ask(url, { method: 'PUT', headers: { ...headers, 'If-Match': etag }, body });
      if (answer.status === 200) {
        writer.n++;
        unknown = false;
        etag = answer.headers.get('etag') ?? undefined;
        this.#acknowledge('write', caller);
      } else if (answer.status === 503) {
        unknown = true;
      } else if (answer.status === 412 && unknown) {
        etag = undefined; // the profile was written meanwhile, most likely by this writer
      } else {
        throw new Error(`the response to a write is ${answer.status}`);
      }
      await pause(answer.status === 200 ? THINKING_MS : AGAIN_MS);
    }
  }

  /** Feeds events one by one; a rejected event is sent again with the same Idempotency-Key. */
  async #feed({ key, organizer, ids }) {
    const caller = {};
    for (let id = ids.length + 1; !this.#ending;) {
      const record = { id, title: `Event ${id}`, status: 'scheduled', visibility: 'public', starts_at: '2031-05-01 18:00:00', timezone: 'UTC', organizer_id: organizer }; // prettier-ignore
      const { status, body } = await this.#ask(`${this.#anyServer.url}/api/platform/records`, {
        method: 'POST',
        headers: {
          'X-API-Key': key,
          'Content-Type': 'application/x-ndjson',
          'Idempotency-Key': `event-${id}`,
        },
        body: `${JSON.stringify({ type: 'events', record })}\n`,
      });
      if (status === 200) {
        if (body.created !== 1) this.#fault('twice', `a line was written twice: ${JSON.stringify(body)}`);
        ids.push(id++);
        this.#acknowledge('feed', caller);
      } else if (status !== 503) {
        throw new Error(`the response to a feed is ${status}`);
      }
      await pause(status === 200 ? THINKING_MS : AGAIN_MS);
    }
  }

  async #signIn(member) {
    const browser = new Browser(this.#anyServer);
    const caller = {};
    while (!this.#ending) {
      const code = await this.#tried(() => browser.authorize(member));
      if (code === undefined) continue;
      const tokens = await this.#used(() => exchange(this.#anyServer, code));
      if (tokens) {
        this.#codes.push({ code, tokens });
        this.#acknowledge('sign-in', caller);
      }
      await pause(THINKING_MS);
    }
  }

  async #refresh(chain) {
    const browser = new Browser(this.#anyServer);
    const caller = {};
    while (!this.#ending) {
      if (chain.token === undefined) {
        const code = await this.#tried(() => browser.authorize(chain.member));
        if (code === undefined) continue;
        chain.used = [];
        chain.token = (await this.#used(() => exchange(this.#anyServer, code)))?.refresh_token;
        continue;
      }
      const tokens = await this.#used(() => refresh(this.#anyServer, chain.token));
      if (tokens) {
        chain.used.push({ token: chain.token, at: performance.now() });
        this.#acknowledge('refresh', caller);
      }
      chain.token = tokens?.refresh_token; // without: the token was used, but its response was lost and is too old to be repeated
      await pause(THINKING_MS);
    }
  }

  /** Reads from one server, so that interruptions are measured for each server. */
  async #read(server, key) {
    const caller = {};
    for (; !this.#ending; await pause(THINKING_MS)) {
      const { status } = await this.#ask(`${server.url}/api/public/profile`, {
        headers: { 'X-API-Key': key },
      });
      if (status === 200) this.#acknowledge('read', caller);
      else if (status !== 503) throw new Error(`the response to a read is ${status}`);
    }
  }

  /** The servers are never killed, so they always respond. */
  async #ask(url, options) {
    const response = await fetch(url, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
    const text = await response.text();
    if (response.status === 503) {
      this.refused++;
      if (response.headers.get('retry-after') === null) this.faults.push('a 503 without Retry-After');
    }
    return {
      status: response.status,
      headers: response.headers,
      body: text.startsWith('{') ? JSON.parse(text) : {},
    };
  }

  /** @returns the result of `work`; undefined if the request was rejected temporarily */
  async #tried(work) {
    try {
      return await work();
    } catch (error) {
      if (error.status !== 503) throw error;
      this.refused++;
      await pause(AGAIN_MS);
      return undefined;
    }
  }

  /** Uses a single-use value, repeatedly until the outcome is known. @returns undefined if the value was used, and the response was lost */
  async #used(work) {
    for (let unknown = false; ; unknown = true) {
      try {
        const tokens = await this.#tried(work);
        if (tokens) return tokens;
      } catch (error) {
        if (unknown && error.status === 400) return undefined;
        throw error;
      }
    }
  }
}

/** The status of the response; repeats the request while the status is 503. */
async function outcome(work) {
  for (const latest = performance.now() + PATIENCE_MS; ; await pause(AGAIN_MS)) {
    const status = await work().then(
      (answer) => answer.status ?? 200,
      (error) => error.status,
    );
    if (status !== 503 || performance.now() > latest) return status;
  }
}
