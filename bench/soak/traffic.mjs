// The callers of the soak: everything that they do, and what must be true of the answers.
import { setTimeout as pause } from 'node:timers/promises';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { PASSWORD } from '../instances.mjs';
import { Browser, CLIENT_ID, exchangeForm, formsOf, refreshForm } from '../oauth-client.mjs';
import { MEMBERS } from './machines.mjs';
import { Requests } from './requests.mjs';

/** Share of each kind of work. The requests of a sign-in (pages, exchange, file, calendar link) come on top. */
export const MIX = {
  readByKey: 38,
  readByToken: 20,
  write: 10,
  feed: 6,
  sync: 8,
  refresh: 5,
  assistant: 3,
  calendar: 3,
  page: 3,
  revoke: 3,
  signIn: 0.5,
  signInAgain: 1.5,
  signOut: 0.5,
};
const READS = ['/profile', '/me', '/events', '/events?limit=5&sort=starts_at', '/connections', '/achievements', '/credential']; // prettier-ignore
const PAGES = [
  '/account/apps',
  '/account/keys',
  '/account/sessions',
  '/account/activity',
  '/account/security',
];
const TOOLS = ['get_profile', 'list_events', 'list_connections', 'list_all_achievements'];
const EVENTS = 2 * MEMBERS;
/** How long the response to a refresh is repeated. */
const REPEATED_MS = 10_000;
/** Signed-in apps from which on revocations begin, browsers from which on they sign out, and calendar links in use. */
const KEPT = { sessions: 60, browsers: 25, links: 40 };
const REVISION = '2026-07-28';
const JSON_BODY = { 'Content-Type': 'application/json' };

/** A response, or the lack of one, that ends what the caller was about to do. */
class Refused extends Error {}

export class Traffic extends Requests {
  /** Descriptions of what was acknowledged and is gone, or was ended and lives on. */
  lost = { signIns: [], writes: [], revocations: [] };
  /** Refreshes that were refused for longer than their response is repeated. */
  late = 0;
  underWay = 0;
  /** Whether the program has assistants. */
  hasAssistants = false;
  /** Live sign-ins of an app: `{member, access, refresh, refreshedAt, isBusy}`. */
  sessions = [];
  #browsers = [];
  #links = [];
  #busyMembers = new Set();
  #written = new Map();
  #acknowledged = new Map();
  #cursors = new Map();
  #feedVersion = 1;
  #turns = new Map();
  #keySet;

  /** Begins work of a kind that was due then. */
  begin(kind, due) {
    this.underWay++;
    this[kind](due)
      .catch((error) => {
        if (!(error instanceof Refused)) this.fail(kind, 'the soak itself', due, String(error.stack));
      })
      .finally(() => this.underWay--);
  }

  #turn(of) {
    const turn = this.#turns.get(of) ?? 0;
    this.#turns.set(of, turn + 1);
    return turn;
  }

  /** One of the list after the other, so that none is left out for long. */
  #next = (list, of) => list[this.#turn(of) % list.length];

  #member = (of) => 1 + ((this.#turn(of) * 7) % MEMBERS);

  #key = (member) => ({ 'X-API-Key': this.machines.keys[member - 1] });

  // --------------------------------------------------------------------------------------------------------------- API

  async readByKey(due) {
    const headers = this.#key(this.#member('reader'));
    await this.send('read by key', `/api/public${this.#next(READS, 'reads by key')}`, { headers, due });
  }

  readByToken(due) {
    return this.#withSession(async ({ access }) => {
      const headers = { Authorization: `Bearer ${access}` };
      await this.send('read by token', `/api/public${this.#next(READS, 'reads by token')}`, { headers, due });
    });
  }

  async write(due) {
    const member = this.#member('writer');
    if (this.#busyMembers.has(member)) return;
    this.#busyMembers.add(member);
    const value = (this.#written.get(member) ?? 0) + 1;
    this.#written.set(member, value);
    const headers = { ...JSON_BODY, ...this.#key(member) };
    const body = JSON.stringify({ bio: String(value) });
    const answer = await this.insist('write', '/api/public/profile', { method: 'PUT', headers, body, due });
    if (answer?.status === 200) this.#acknowledged.set(member, value);
    this.#busyMembers.delete(member);
  }

  /** Compares what members were told with what is stored. */
  async checkWrites() {
    for (const { id, bio } of await this.machines.query('SELECT id::int, bio FROM users')) {
      const last = this.#acknowledged.get(id);
      if (last && Number(bio) < last) this.lost.writes.push(`member ${id} has ${bio}, and was told ${last}`);
    }
  }

  async feed(due) {
    const id = 1 + (this.#feedVersion % EVENTS);
    const version = ++this.#feedVersion;
    const record = {
      id,
      title: `Event ${id}, version ${version}`,
      status: 'scheduled',
      visibility: 'public',
      starts_at: '2031-05-01 18:00:00',
      timezone: 'Europe/Vienna',
      organizer_id: 1 + (id % MEMBERS),
    };
    await this.send('feed', '/api/platform/records', {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-ndjson', 'X-API-Key': this.machines.platformKey },
      body: JSON.stringify({ type: 'events', op: 'put', record, version }),
      due,
    });
  }

  async sync(due) {
    const member = 1 + Math.floor(Math.random() * 20);
    const { failovers } = this.machines.cluster;
    const cursor = this.#cursors.get(member);
    const path = `/api/public/sync${cursor ? `?limit=1000&cursor=${cursor.next}` : ''}`;
    // A cursor is one of its primary (docs/operators/changes.md): after a failover, a member's program begins anew.
    const expected = (status) =>
      status === 200 || (status === 410 && cursor?.failovers < this.machines.cluster.failovers);
    const { status, body } = await this.send('sync', path, { headers: this.#key(member), due, expected });
    if (status === 200) this.#cursors.set(member, { next: JSON.parse(body).next, failovers });
    else if (status === 410) this.#cursors.delete(member);
  }

  async assistant(due) {
    if (!this.hasAssistants) return;
    const name = this.#next(TOOLS, 'tools');
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': { name: 'soak', version: '1' },
    };
    const answer = await this.send('assistant', '/api/public/mcp', {
      method: 'POST',
      headers: {
        ...JSON_BODY,
        ...this.#key(this.#member('assistant')),
        'MCP-Protocol-Version': REVISION,
        'Mcp-Method': 'tools/call',
        'Mcp-Name': name,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: {}, _meta },
      }),
      due,
    });
    if (answer.status === 200 && !JSON.parse(answer.body).result?.content)
      this.fail('assistant', 'no result', this.now(), answer.body);
  }

  async calendar(due) {
    if (this.#links.length > 0) await this.send('calendar', this.#next(this.#links, 'links'), { due });
  }

  // ------------------------------------------------------------------------------------------------------------ tokens

  /** Reserves a sign-in for `work`: one after the other, or the one that was refreshed longest ago. */
  async #withSession(work, isOldest = false) {
    const free = this.sessions.filter(({ isBusy }) => !isBusy);
    const session = isOldest
      ? free.toSorted((one, other) => one.refreshedAt - other.refreshedAt)[0]
      : this.#next(free, 'sessions');
    if (!session) return;
    session.isBusy = true;
    await work(session).finally(() => (session.isBusy = false));
  }

  refresh() {
    return this.#withSession(async (session) => {
      const from = performance.now();
      // A lost response is repeated for ten seconds; a session that was refused for longer signs in again.
      const isLate = () => performance.now() - from > REPEATED_MS;
      const answer = await this.insist('refresh', '/oauth/token', {
        method: 'POST',
        form: refreshForm(session.refresh),
        expected: (status) => status === 200 || (status === 400 && isLate()),
      });
      if (answer?.status === 200) {
        const { access_token, refresh_token } = JSON.parse(answer.body);
        Object.assign(session, { access: access_token, refresh: refresh_token, refreshedAt: this.now() });
        return;
      }
      if (isLate()) this.late++;
      else this.lost.signIns.push(`a refresh of member ${session.member}: ${answer?.status} ${answer?.body}`);
      this.sessions.splice(this.sessions.indexOf(session), 1);
    }, true);
  }

  /** Revokes as many as sign in, so that their number is constant; checks that all instances refuse them within a second. */
  async revoke() {
    if (this.sessions.length < KEPT.sessions) return;
    await this.#withSession(async (session) => {
      this.sessions.splice(this.sessions.indexOf(session), 1);
      const form = { client_id: CLIENT_ID, token: session.refresh };
      const answer = await this.insist('revoke', '/oauth/revoke', { method: 'POST', form });
      if (answer?.status !== 200) return void this.lost.revocations.push(`not revoked: ${answer?.status}`);
      await pause(1_000);
      const headers = { Authorization: `Bearer ${session.access}` };
      const expected = (status) => status === 401;
      for (const server of this.machines.balancer.serving) {
        const refused = await this.send('revoked token', '/api/public/me', { server, headers, expected });
        if (refused.status === 200)
          this.lost.revocations.push(`a token of member ${session.member} lives on`);
      }
    });
  }

  // ---------------------------------------------------------------------------------------------------------- browsers

  #newBrowser() {
    return new Browser(this.#anyServer, (url, { method, headers, form }) =>
      this.send('page', url, {
        method,
        headers,
        form,
        isStreamed: url === '/account/data/download',
        expected: (status) => [200, 302, 303].includes(status),
      }),
    );
  }

  /** For a browser, which puts it before each path, and does not know which server answers. */
  #anyServer = { name: 'a server', url: '' };

  /** Signs in, unless the browser is signed in already, consents, and exchanges the code. Starts again after a failure. */
  async #authorize(browser, member) {
    const reasons = {};
    const because = (reason) => void (reasons[reason] = (reasons[reason] ?? 0) + 1);
    for (let attempt = 0; attempt < 30; attempt++) {
      const code = await browser
        .authorize({ username: `member_${member}`, password: PASSWORD })
        .catch((error) => because(error.message.slice(0, 160)));
      if (code !== undefined) {
        const answer = await this.send('code exchange', '/oauth/token', {
          method: 'POST',
          form: exchangeForm(code),
        });
        if (answer.status === 200) return this.#signedIn(member, JSON.parse(answer.body));
        because(`exchange: ${answer.status} ${answer.body.slice(0, 200)}`);
      }
      await pause(500);
    }
    this.lost.signIns.push(`the sign-in of member ${member} never ended: ${JSON.stringify(reasons)}`);
  }

  async #signedIn(member, { access_token, refresh_token, id_token }) {
    this.sessions.push({
      member,
      access: access_token,
      refresh: refresh_token,
      refreshedAt: this.now(),
      isBusy: false,
    });
    // As apps do: the published keys are fetched anew for a key id that is not among them.
    for (const isFresh of [false, true]) {
      try {
        if (isFresh || !this.#keySet) await this.#fetchKeys();
        await jwtVerify(id_token, this.#keySet, { audience: CLIENT_ID });
        return;
      } catch (error) {
        if (isFresh && !(error instanceof Refused))
          this.fail('ID token', error.code, this.now(), error.message);
      }
    }
  }

  async #fetchKeys() {
    const { status, body } = await this.send('signing keys', '/oauth/jwks');
    if (status !== 200) throw new Refused();
    this.#keySet = createLocalJWKSet(JSON.parse(body));
  }

  async signIn() {
    const browser = this.#newBrowser();
    const member = this.#member('browser');
    await this.#authorize(browser, member);
    // For both, the password must have been typed within five minutes.
    await this.#submit(browser, '/account/data', '/account/data/download', 'file of one’s data');
    if (this.#links.length < KEPT.links) {
      const made = await this.#submit(
        browser,
        '/account/calendar',
        '/account/calendar/create',
        'new calendar link',
      );
      const { body } = await browser.open(made.headers.location ?? '/account/calendar');
      const [link] = /\/calendar\/[\w-]+\.ics/.exec(body) ?? [];
      if (link) this.#links.push(link);
      else if (made.status === 303) this.fail('new calendar link', 'not shown', this.now(), body);
    }
    this.#browsers.push({ browser, member, usedAt: this.now() });
  }

  /** Opens a page, and sends its form with this action. @throws Refused if either is not answered */
  async #submit(browser, path, action, what) {
    const page = await browser.open(path);
    if (page.status !== 200) throw new Refused();
    const form = formsOf(page.body, { name: 'My phone' }).find((one) => one.path === action);
    if (!form) {
      this.fail(what, 'no form', this.now(), page.body.replaceAll(/\s+/g, ' '));
      throw new Refused();
    }
    return browser.open(form.path, form.form);
  }

  async #withBrowser(work) {
    const one = this.#browsers.shift();
    if (!one) return;
    await work(one).finally(() => this.#browsers.push(Object.assign(one, { usedAt: this.now() })));
  }

  /** Whether all sign-ins and browsers were used since then. */
  areAllUsedSince(then) {
    return (
      this.sessions.every(({ refreshedAt }) => refreshedAt > then) &&
      this.#browsers.every(({ usedAt }) => usedAt > then)
    );
  }

  signInAgain() {
    return this.#withBrowser(({ browser, member }) => this.#authorize(browser, member));
  }

  page() {
    return this.#withBrowser(({ browser }) => browser.open(this.#next(PAGES, 'pages')));
  }

  async signOut() {
    if (this.#browsers.length < KEPT.browsers) return;
    const { browser } = this.#browsers.shift();
    await this.#submit(browser, '/account/apps', '/account/sign-out', 'sign-out');
  }

  /** Sign-ins and browsers to begin with. */
  async prepare() {
    for (let i = 0; i < 25; i++) await this.signIn();
  }
}
