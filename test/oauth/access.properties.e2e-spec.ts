import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { Usage } from '../../src/auth/usage/usage.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { ClientReviews } from '../../src/clients/reviews.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { Upkeep } from '../../src/operations/upkeep.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import {
  asksForPassword,
  OauthTest,
  PASSWORD,
  REDIRECT_URI,
  type Browser,
  type FormPage,
} from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { memberWithEmail } from '../support/smtp.js';
import { eventually } from '../support/timing.js';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
/** Minimum number of grants in the simulated year. */
const GRANTS = Number(process.env.ACCESS_GRANTS ?? 30);
/** Number of members. The test compares a member only after their own steps and after a sweep. */
const MEMBERS = Math.max(2, Math.ceil(GRANTS / 40));
const NATIVE = 'com.example.app:/cb';
const API_SCOPES = ['events:read', 'profile:read'];
const DURATIONS = ['once', '30', '180', 'unlimited'] as const;
type Duration = (typeof DURATIONS)[number];
const secondsOf = (duration: Duration) =>
  duration === 'once' ? 660 : duration === 'unlimited' ? Infinity : Number(duration) * DAY;

/** Names of steps; the test draws repeated names more often. */
const STEPS = `consent consent consent consent consent consent consent consent signInAgain signInAgain signInAgain redeem redeem
refresh refresh refresh refresh reuse revokeToken change change endAccess endAccess enableMember enableMember toggleApp approve
sweep sweep passTime passTime passTime passTime passTime`;
type Name =
  | 'consent' | 'signInAgain' | 'redeem' | 'refresh' | 'reuse' | 'revokeToken' | 'change' | 'endAccess'
  | 'enableMember' | 'toggleApp' | 'approve' | 'sweep' | 'passTime'; // prettier-ignore
const step = fc.record({
  does: fc.constantFrom(...(STEPS.split(/\s/) as Name[])),
  member: fc.nat({ max: MEMBERS - 1 }),
  app: fc.nat({ max: 2 }),
  /** Index among the grants that the step can affect. */
  pick: fc.nat({ max: 99 }),
  duration: fc.constantFrom(...DURATIONS),
  scopes: fc.subarray(API_SCOPES, { minLength: 1 }),
  redeems: fc.boolean(),
  /** Cause of the access's end; `all`: the member ends the access of all apps. */
  end: fc.constantFrom('member', 'admin', 'all', 'password', 'disable', 'erase'),
  seconds: fc.constantFrom(HOUR, DAY, 5 * DAY, 24 * DAY, 40 * DAY, 175 * DAY),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

interface Member {
  readonly id: number;
  readonly username: string;
  readonly browser: Browser;
  readonly calendar: string;
  hasCalendar: boolean;
  disabled: boolean;
  erased: boolean;
}

interface App {
  readonly id: string;
  readonly name: string;
  readonly isNative: boolean;
  /** Time without use after which access ends, in seconds. */
  readonly idle: number;
  readonly owner: number | null;
  readonly endpoint: string;
  disabled: boolean;
  approved: boolean;
}

/** A member's sign-in in an app: a row of oauth_grants unless `gone`. Times are in seconds of the model's clock. */
interface Grant {
  readonly id: string;
  readonly member: Member;
  readonly app: App;
  readonly createdAt: number;
  scopes: readonly string[];
  endsAt: number;
  /** Time at which the row is deleted if the access is not used. */
  expiresAt: number;
  code: Record<string, string> | undefined;
  /** Time at which the last token expires. */
  tokensEndAt: number;
  access: { readonly token: string; readonly endsAt: number }[];
  refresh: string | undefined;
  readonly used: { readonly token: string; readonly at: number }[];
  usedAt: number;
  readonly noticedAt: { event: number; webhook: number };
  gone: boolean;
  /** Reason for the end, as the app reads it in the error. */
  why: string | undefined;
  endedAt: number;
}

/** A message, notice or audit event of the server. */
interface Row {
  readonly place: number;
  readonly type: string;
  readonly user_id: number | null;
}

interface Consent {
  granted: readonly string[];
  endsAt: number;
}

const later = (...times: number[]) => Math.max(-Infinity, ...times);
const endOf = (grants: readonly Grant[]) => later(...grants.map(({ endsAt }) => endsAt));
const union = (grants: readonly Grant[]) => [...new Set(grants.flatMap((grant) => grant.scopes))].toSorted();

async function makeMember(oauth: OauthTest): Promise<Member> {
  const made = await memberWithEmail(oauth);
  const links = oauth.api.app.get(CalendarLinks);
  const calendar = await links.create(made.id, 'Phone', { actor: 'system', ip: null });
  return { ...made, browser: oauth.browser(), calendar, hasCalendar: true, disabled: false, erased: false };
}

/** A server with members and three apps, and a model of their expected state. */
class World {
  #passed = 0;
  readonly #grants: Grant[] = [];
  readonly #erased: number[] = [];
  readonly #consents = new Map<string, Consent>();
  readonly #last = { webhook_deliveries: 0, platform_changes: 0, auth_events: 0 };
  #expected = { told: [] as string[], notices: [] as string[], audited: [] as string[] };

  private constructor(
    private readonly oauth: OauthTest,
    private readonly receiver: Receiver,
    private readonly members: Member[],
    private readonly apps: readonly App[],
  ) {}

  static async make(oauth: OauthTest, receiver: Receiver): Promise<World> {
    const members: Member[] = [];
    for (let n = 0; n < MEMBERS; n++) members.push(await makeMember(oauth));
    const owner = { userId: (await oauth.member()).id, ip: null };
    const apps: App[] = [];
    for (const [n, isNative] of [false, true, true].entries()) {
      const [name, isOwn, idle] = [`App ${'ABC'[n]}`, n === 2, (isNative ? 180 : 30) * DAY];
      const id = await oauth.client({
        name,
        ...(isNative ? { type: 'native', redirect_uris: [NATIVE] } : {}),
        ...(isOwn ? { owner, scopes: ['events:read', 'profile:read'] } : {}),
      });
      const { id: endpoint } = await new WebhooksService(oauth.dataSource, oauth.api.config).create({
        url: receiver.url,
        types: ['access.changed', 'access.ending', 'access.ended'],
        clientId: id,
        actor: 'admin',
      });
      const states = { owner: isOwn ? owner.userId : null, disabled: false, approved: !isOwn };
      apps.push({ id, name, isNative, idle, endpoint, ...states });
    }
    const world = new World(oauth, receiver, members, apps);
    await world.#news();
    return world;
  }

  now = () => this.#passed + Date.now() / 1_000;
  /** Completed share of the year and of its grants. */
  get progress(): { time: number; grants: number } {
    return { time: this.#passed / YEAR, grants: this.#grants.length / GRANTS };
  }

  /** Runs a step on the server and in the model, and compares the results. */
  async take(made: Step): Promise<void> {
    const count = this.#grants.length;
    if (!this.#isClear(0, 30)) await this.passTime({ ...made, seconds: 700 }); // keeps a margin for a slow host
    await this.#check(made, () => this[made.does](made));
    const added = this.#grants[count];
    if (added && made.redeems) await this.#check(made, () => this.#redeem(added));
  }

  async #check(made: Step, act: () => Promise<void>): Promise<void> {
    this.#expected = { told: [], notices: [], audited: [] };
    await act();
    this.oauth.api.app.get(RevocationChannel).announce('all'); // does not wait for PostgreSQL's notification
    const members = made.does === 'sweep' ? this.members : [this.members[made.member]!];
    await this.#compareTokens(members);
    await this.#noticeEnds();
    expect({ made, ...(await this.#news()) }).toEqual({
      made,
      told: this.#expected.told.toSorted(),
      notices: this.#expected.notices.toSorted(),
      audited: this.#expected.audited.toSorted(),
    });
    await this.#comparePages(members);
  }

  /** Checks that the receiver got each delivered message once. Deletes the apps, because their access would end later. */
  async end(): Promise<void> {
    const endpoints = this.apps.map(({ endpoint }) => endpoint);
    const sent = await eventually(async () => {
      const rows = await this.oauth.query<{ id: string; type: string; status: string }>(
        `SELECT 'msg_' || replace(id::text, '-', '') AS id, type, status FROM webhook_deliveries WHERE endpoint_id = ANY ($1)`,
        [endpoints],
      );
      return rows.every(({ status }) => status !== 'pending') ? rows : undefined;
    });
    expect(sent.filter(({ type, status }) => status !== 'delivered' && type === 'access.ended')).toEqual([]);
    const ids = sent.filter(({ status }) => status === 'delivered').map(({ id }) => id);
    const { received } = this.receiver;
    expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
    // Erasure deletes delivered messages about the member.
    const kept = received.filter(
      ({ id, message }) => ids.includes(id) || !this.#erased.includes(message.data.member_id!),
    );
    expect(kept.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    this.receiver.received.length = 0;
    for (const [table, column] of [
      ['webhook_endpoints', 'client_id'],
      ['oauth_clients', 'id'],
    ])
      await this.oauth.query(`DELETE FROM ${table} WHERE ${column} = ANY ($1)`, [
        this.apps.map(({ id }) => id),
      ]);
  }

  #of(ofMember: Member, ofApp: App): Grant[] {
    return this.#grants.filter((grant) => !grant.gone && grant.member === ofMember && grant.app === ofApp);
  }

  #isLive(grant: Grant, at = this.now()): boolean {
    return !grant.gone && at < Math.min(grant.endsAt, grant.expiresAt, grant.tokensEndAt);
  }

  #live(ofMember: Member, ofApp: App): Grant[] {
    return this.#of(ofMember, ofApp).filter((grant) => !grant.code && this.#isLive(grant));
  }

  #pick(picked: number, isWanted: (grant: Grant) => boolean): Grant | undefined {
    const found = this.#grants.filter(isWanted).slice(-20);
    return found[picked % found.length];
  }

  /** Records the webhook message that the app must get after these grants were deleted or changed. */
  #tell(
    ofMember: Member,
    ofApp: App,
    { deleted = [], changed = false }: { deleted?: readonly Grant[]; changed?: boolean },
    by = 'platform',
  ) {
    const gaveAccess = deleted.filter(({ code }) => !code);
    const live = this.#live(ofMember, ofApp);
    const say = (what: string) => this.#expected.told.push(`${what} of ${ofMember.id} in ${ofApp.name}`);
    const last = gaveAccess.toSorted((one, other) => this.#endOf(one) - this.#endOf(other)).at(-1);
    for (const grant of deleted)
      Object.assign(grant, { why: this.#reasonOf(grant, by), endedAt: this.#endOf(grant), gone: true });
    const left = live.filter(({ gone }) => !gone);
    const isLost = union(gaveAccess).some((scope) => !union(left).includes(scope));
    if (left.length > 0) {
      if (changed || isLost || endOf(gaveAccess) > endOf(left)) say(`changed (${union(left).join()})`);
    } else if (last && this.#of(ofMember, ofApp).every(({ code }) => code))
      say(`ended (${union(gaveAccess).join()}, ${last.why})`);
  }

  #endOf({ endsAt, expiresAt }: Grant): number {
    return Math.min(endsAt, expiresAt, this.now());
  }

  #reasonOf({ endsAt, expiresAt }: Grant, by: string): string {
    if (Math.min(endsAt, expiresAt) > this.now()) return by;
    return endsAt <= expiresAt ? 'expired' : 'unused';
  }

  /** Ends a member's grants in these apps. @returns the number of grants */
  #end(ofMember: Member, apps: readonly App[], by: string): number {
    let count = 0;
    for (const ofApp of apps) {
      const deleted = this.#of(ofMember, ofApp);
      count += deleted.length;
      this.#tell(ofMember, ofApp, { deleted }, by);
    }
    return count;
  }

  #audit(type: string, ofMember?: Member, details = ''): void {
    this.#expected.audited.push([type, ofMember?.id, details].join(' ').trim());
  }

  // Steps

  async consent({ member: m, app: a, duration: chosen, scopes: granted }: Step) {
    const [ofMember, ofApp] = [this.members[m]!, this.apps[a]!];
    if (ofMember.disabled || ofApp.disabled) return;
    const longest = !ofApp.isNative || !ofApp.approved ? '180' : 'unlimited';
    const wanted = DURATIONS[Math.min(DURATIONS.indexOf(chosen), DURATIONS.indexOf(longest))]!;
    const request = this.#request(ofApp, 'consent');
    const browser = this.oauth.browser();
    const untick = API_SCOPES.filter((scope) => !granted.includes(scope));
    const { username } = ofMember;
    const signingIn = browser.authorize(request.url, { username, duration: wanted, untick });
    if (!ofApp.approved) return expect(signingIn).rejects.toThrow('403');
    const at = this.now();
    const before = this.#consents.get(`${m} ${a}`);
    const isEnded =
      before &&
      before.endsAt <= at &&
      !this.#of(ofMember, ofApp).some(({ endsAt, expiresAt }) => at < Math.min(endsAt, expiresAt));
    if (!before || isEnded) this.#expected.notices.push(`consent.granted to ${ofMember.id} by ${ofApp.id}`);
    this.#audit('consent.granted', ofMember, wanted);
    const ends = wanted === 'once' ? at : at + secondsOf(wanted);
    this.#consents.set(`${m} ${a}`, { granted, endsAt: ends });
    const wider = this.#of(ofMember, ofApp).filter(({ scopes: had }) =>
      had.some((scope) => !granted.includes(scope)),
    );
    for (const grant of wider) grant.scopes = grant.scopes.filter((scope) => granted.includes(scope));
    this.#tell(ofMember, ofApp, { changed: wider.length > 0 });
    await this.#addCode(ofMember, ofApp, await signingIn, request.verifier, granted, at + secondsOf(wanted));
  }

  /** Signs in with `prompt=none`: a web app gets access again until the consent ends. */
  async signInAgain({ member: m }: Step) {
    const [ofMember, ofApp] = [this.members[m]!, this.apps[0]!];
    if (ofMember.disabled || ofApp.disabled) return;
    await this.#accountPage(ofMember);
    const request = this.#request(ofApp, 'none');
    const back = await ofMember.browser.leave(request.url);
    const consent = this.#consents.get(`${m} 0`);
    const at = this.now();
    if (!consent || consent.endsAt <= at)
      return expect(back.searchParams.get('error')).toBe('consent_required');
    const ends = Math.min(at + 180 * DAY, consent.endsAt);
    await this.#addCode(ofMember, ofApp, back, request.verifier, consent.granted, ends);
  }

  #request(ofApp: App, prompt: string) {
    const redirect_uri = ofApp.isNative ? NATIVE : REDIRECT_URI;
    return this.oauth.request(ofApp.id, { scope: API_SCOPES.join(' '), redirect_uri, prompt });
  }

  async #addCode(
    ofMember: Member,
    ofApp: App,
    back: URL,
    code_verifier: string,
    granted: readonly string[],
    endsAt: number,
  ) {
    const code = back.searchParams.get('code')!;
    const redirect_uri = ofApp.isNative ? NATIVE : REDIRECT_URI;
    const [row] = await this.oauth.query<{ id: string }>(
      'SELECT id FROM oauth_grants WHERE user_id = $1 AND client_id = $2 AND id <> ALL ($3)',
      [ofMember.id, ofApp.id, this.#grants.map(({ id }) => id)],
    );
    const at = this.now();
    const grant: Grant = {
      id: row!.id,
      member: ofMember,
      app: ofApp,
      createdAt: at,
      scopes: granted,
      endsAt,
      expiresAt: at + ofApp.idle + DAY,
      code: { grant_type: 'authorization_code', client_id: ofApp.id, code, code_verifier, redirect_uri },
      tokensEndAt: at + 60,
      access: [],
      refresh: undefined,
      used: [],
      usedAt: -Infinity,
      noticedAt: { event: -Infinity, webhook: -Infinity },
      gone: false,
      why: undefined,
      endedAt: Infinity,
    };
    this.#grants.push(grant);
  }

  async redeem({ pick }: Step) {
    const grant = this.#pick(pick, ({ code, app: ofApp }) => code !== undefined && !ofApp.disabled);
    if (grant) await this.#redeem(grant);
  }

  async #redeem(grant: Grant) {
    const { member: ofMember, app: ofApp, scopes: added, endsAt } = grant;
    const { status, body } = await this.oauth.token(grant.code!);
    if (!this.#isLive(grant)) return expect([status, body.error]).toEqual([400, 'invalid_grant']);
    expect([status, body.error]).toEqual([200, undefined]);
    const before = this.#live(ofMember, ofApp);
    const isMore = added.some((scope) => !union(before).includes(scope)) || endsAt > endOf(before);
    grant.code = undefined;
    this.#audit('token.issued', ofMember, grant.id);
    this.#issue(grant, body);
    this.#tell(ofMember, ofApp, { changed: before.length > 0 && isMore });
  }

  #issue(grant: Grant, body: { access_token: string; refresh_token: string; [name: string]: unknown }) {
    const at = this.now();
    const isOnce = grant.endsAt - grant.createdAt < HOUR;
    grant.access.push({ token: body.access_token, endsAt: Math.min(at + 600, grant.endsAt) });
    grant.refresh = body.refresh_token;
    grant.tokensEndAt = at + (isOnce ? 600 : grant.app.idle);
    if (!isOnce && (grant.expiresAt - at < grant.app.idle || grant.expiresAt - at > grant.app.idle + DAY))
      grant.expiresAt = at + grant.app.idle + DAY;
    const left = body.refresh_token_expires_in as number | undefined;
    if (isOnce) expect([body.refresh_token, left]).toEqual([undefined, undefined]);
    else if (grant.endsAt === Infinity) expect(left).toBeUndefined();
    else expect(Math.abs(left! - (grant.endsAt - at))).toBeLessThan(60);
  }

  async refresh({ pick }: Step) {
    const grant = this.#pick(pick, (one) => one.refresh !== undefined && !one.app.disabled);
    if (!grant) return;
    const { status, body } = await this.oauth.refresh(grant.app.id, grant.refresh!);
    if (!this.#isLive(grant)) {
      expect([status, body.error]).toEqual([400, 'invalid_grant']);
      // The server stores the reason for 30 days.
      if (Math.min(grant.endedAt, grant.endsAt, grant.tokensEndAt) < this.now() - 29 * DAY) return;
      const why = grant.why ?? (grant.endsAt <= grant.tokensEndAt ? 'expired' : 'unused');
      const words = { unused: `not used for ${grant.app.idle / DAY} days`, expired: 'expired' }[why];
      return expect(body.error_description).toContain(`: ${words ?? `ended by the ${why}`}`);
    }
    expect([status, body.error]).toEqual([200, undefined]);
    this.#audit('token.refreshed', grant.member, grant.id);
    grant.used.push({ token: grant.refresh!, at: this.now() });
    this.#issue(grant, body);
  }

  /** Replays a used token, as a thief does, or the app after a theft. The server then ends the grant. */
  async reuse({ pick }: Step) {
    // The sweeper deletes a used token 30 days after its creation.
    const usedBefore = ({ used, createdAt }: Grant) =>
      used.find(
        ({ at }, i) => at < this.now() - HOUR / 2 && (used[i - 1]?.at ?? createdAt) > this.now() - 29 * DAY,
      );
    const grant = this.#pick(pick, (one) => this.#isLive(one) && !one.app.disabled && !!usedBefore(one));
    if (!grant) return;
    const { status, body } = await this.oauth.refresh(grant.app.id, usedBefore(grant)!.token);
    expect([status, body.error]).toEqual([400, 'invalid_grant']);
    this.#audit('token.reused', grant.member, grant.id);
    this.#tell(grant.member, grant.app, { deleted: [grant] });
  }

  async revokeToken({ pick }: Step) {
    const grant = this.#pick(pick, (one) => one.refresh !== undefined && !one.app.disabled);
    if (!grant) return;
    const form = { client_id: grant.app.id, token: grant.refresh! };
    expect((await this.oauth.post('/oauth/revoke', form)).status).toBe(200);
    if (!this.#isLive(grant)) return;
    this.#audit('grant.revoked', grant.member, grant.id);
    this.#tell(grant.member, grant.app, { deleted: [grant] }, 'app');
  }

  async change({ member: m, app: a, duration: wanted }: Step) {
    const [ofMember, ofApp] = [this.members[m]!, this.apps[a]!];
    if (ofMember.erased || wanted === 'once') return;
    const access = new ConnectedApps(this.oauth.dataSource);
    const changed = this.#of(ofMember, ofApp).filter(
      (grant) => this.#isLive(grant) && grant.endsAt - grant.createdAt > HOUR,
    );
    expect(await access.changeEnd(ofMember.id, ofApp.id, wanted, { actor: 'user', ip: null })).toBe(
      changed.length > 0,
    );
    if (changed.length === 0) return;
    this.#audit('access.changed', ofMember, `${changed.length} ${wanted}`);
    const endsAt = this.now() + secondsOf(wanted);
    const isOtherEnd = changed.some((grant) => grant.endsAt !== endsAt);
    for (const grant of changed) grant.endsAt = endsAt;
    this.#consents.get(`${m} ${a}`)!.endsAt = endsAt;
    this.#tell(ofMember, ofApp, { changed: isOtherEnd });
  }

  async endAccess({ member: m, app: a, end: how }: Step) {
    const [ofMember, ofApp] = [this.members[m]!, this.apps[a]!];
    const { id } = ofMember;
    if (ofMember.disabled) return;
    const connected = new ConnectedApps(this.oauth.dataSource);
    const users = new UsersService(this.oauth.dataSource);
    if (how === 'member' || how === 'admin') {
      const actor = how === 'member' ? 'user' : 'admin';
      const hadConsent = this.#consents.delete(`${m} ${a}`);
      const count = this.#end(ofMember, [ofApp], how === 'member' ? 'member' : 'platform');
      expect(await connected.revoke(id, ofApp.id, { actor })).toBe(count);
      if (hadConsent || count > 0) this.#audit('access.revoked', ofMember, String(count));
      return;
    }
    const count = this.#end(ofMember, this.apps, how === 'all' ? 'member' : 'platform');
    ofMember.hasCalendar = false;
    if (how === 'all' || how === 'erase')
      for (const n of this.apps.keys()) this.#consents.delete(`${m} ${n}`);
    if (how === 'all') {
      expect((await connected.revokeAll(id, { actor: 'user' })).grants).toBe(count);
      this.#audit('access.revoked', ofMember, String(count));
    } else if (how === 'password') {
      await users.setPassword(id, PASSWORD, 'admin');
      this.#audit('user.password_set', ofMember);
      this.#expected.notices.push(`user.password_set to ${id} by null`);
    } else if (how === 'disable') {
      await users.disable(id, 'admin');
      ofMember.disabled = true;
      this.#audit('user.disabled', ofMember);
    } else {
      await eraseMembers(this.oauth.dataSource, [id], { actor: 'admin' });
      ofMember.disabled = ofMember.erased = true;
      this.#erased.push(id);
      this.#audit('user.erased', ofMember);
    }
  }

  async enableMember({ member: m }: Step) {
    const ofMember = this.members[m]!;
    if (ofMember.erased) this.members[m] = await makeMember(this.oauth); // a new member
    if (!ofMember.disabled || ofMember.erased) return;
    await new UsersService(this.oauth.dataSource).enable(ofMember.id, 'admin');
    ofMember.disabled = false;
    this.#audit('user.enabled', ofMember);
  }

  async toggleApp({ app: a }: Step) {
    const ofApp = this.apps[a]!;
    ofApp.disabled = !ofApp.disabled;
    const clients = new ClientsService(this.oauth.dataSource, this.oauth.api.config);
    await clients.setDisabled(ofApp.id, ofApp.disabled, 'admin');
    this.#audit(ofApp.disabled ? 'client.disabled' : 'client.enabled');
  }

  async approve() {
    const ofApp = this.apps[2]!;
    if (ofApp.approved) return;
    const reviews = new ClientReviews(this.oauth.dataSource);
    const reasons = { 'profile:read': 'To greet you.', 'events:read': 'To show them.' };
    const application = { purpose: 'Shows events.', policy_uri: 'https://app.example/privacy', reasons };
    const applying = reviews.apply(ofApp.id, application, { userId: ofApp.owner!, ip: null });
    if (ofApp.disabled) return expect(applying).rejects.toThrow('There is no client');
    await applying;
    await reviews.review(ofApp.id, { approved: true });
    ofApp.approved = true;
    this.#expected.audited.push(`client.applied ${ofApp.owner}`, `client.reviewed ${ofApp.owner}`);
    this.#expected.notices.push(`client.reviewed to ${ofApp.owner} by ${ofApp.id}`);
  }

  async sweep() {
    for (let n = 0; n < 3; n++) await this.oauth.api.app.get(Sweeper).sweep();
    const at = this.now();
    for (const ofMember of this.members)
      for (const ofApp of this.apps) {
        const deleted = this.#of(ofMember, ofApp).filter((grant) => {
          const tokensEndAt = grant.tokensEndAt + (grant.code ? 600 : 60);
          if (at > tokensEndAt) grant.expiresAt = Math.min(grant.expiresAt, at - 1);
          return at > Math.min(grant.endsAt, grant.expiresAt);
        });
        this.#tell(ofMember, ofApp, { deleted });
      }
  }

  async passTime({ seconds }: Step) {
    let passed = seconds;
    while (!this.#isClear(passed, 300)) passed += 700;
    await this.oauth.passTime(passed);
    this.#passed += passed;
  }

  /** Whether no end or due time is within `margin` seconds of the given time. */
  #isClear(passed: number, margin: number): boolean {
    const at = this.now() + passed;
    const moments = this.#grants.flatMap((grant) => {
      const { gone, createdAt, endsAt, expiresAt, tokensEndAt, usedAt, noticedAt } = grant;
      const weeks = [usedAt, noticedAt.event, noticedAt.webhook].map((moment) => moment + 7 * DAY);
      return gone
        ? []
        : [createdAt + 660, endsAt, endsAt - 7 * DAY, expiresAt, tokensEndAt, usedAt + 30 * DAY, ...weeks];
    });
    const consents = [...this.#consents.values()].map(({ endsAt }) => endsAt);
    return [...moments, ...consents].every((moment) => Math.abs(at - moment) > margin);
  }

  // Comparisons

  async #compareTokens(members: readonly Member[]) {
    for (const grant of this.#grants) {
      if (!members.includes(grant.member)) continue;
      const isUsable = !grant.app.disabled && !grant.member.disabled;
      for (const { token, endsAt } of grant.access) {
        const isDead = grant.gone || this.now() >= endsAt;
        const response = await this.oauth.get('/api/public/credential', token);
        const { status } = response;
        const body = (await response.json()) as { scopes: string[]; access_ends_at: string | null };
        expect([grant.id, status]).toEqual([grant.id, !isDead && isUsable ? 200 : 401]);
        const statusOf = (scope: string) => (status === 401 ? 401 : grant.scopes.includes(scope) ? 200 : 403);
        const [events, profile] = API_SCOPES.map(statusOf);
        expect(await this.#statuses(token)).toEqual({ events, sync: status, mcp: profile });
        if (status === 200) {
          expect(body.scopes.toSorted()).toEqual([...grant.scopes].toSorted());
          const isOnce = grant.endsAt - grant.createdAt < HOUR;
          this.#isMoment(body.access_ends_at, isOnce ? endsAt : grant.endsAt);
          grant.usedAt = this.now();
        }
        if (isDead) grant.access = grant.access.filter((one) => one.token !== token);
      }
      if (grant.refresh === undefined || grant.app.disabled || grant.why !== undefined) continue;
      const form = { client_id: grant.app.id, token: grant.refresh };
      const { body } = await this.oauth.post('/oauth/introspect', form);
      expect([grant.id, body.active]).toEqual([grant.id, this.#isLive(grant) && isUsable]);
    }
    for (const { id, calendar, hasCalendar } of members)
      expect([id, (await fetch(calendar)).status]).toEqual([id, hasCalendar ? 200 : 404]);
    await this.oauth.api.app.get(Usage).flush();
  }

  async #statuses(token: string) {
    const tool = await fetch(`${this.oauth.issuer}/api/public/mcp`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_profile","arguments":{}}}',
    });
    return {
      events: (await this.oauth.get('/api/public/events', token)).status,
      sync: (await this.oauth.get('/api/public/sync', token)).status,
      mcp: tool.status,
    };
  }

  #isMoment(time: string | null, at: number) {
    if (at === Infinity) return expect(time).toBeNull();
    const seconds = Date.parse(`${time!.replace(' ', 'T')}Z`) / 1_000 + this.#passed;
    expect(Math.abs(seconds - at)).toBeLessThan(60);
  }

  async #noticeEnds() {
    const [upkeep, { signal }] = [this.oauth.api.app.get(Upkeep), new AbortController()];
    await upkeep.reportEndingAccess(signal);
    await upkeep.tellOfEndingAccess(signal);
    const at = this.now();
    for (const [kind, days] of [
      ['event', 7],
      ['webhook', 30],
    ] as const)
      for (const grant of this.#grants) {
        const { member: ofMember, app: ofApp, endsAt, createdAt, noticedAt } = grant;
        if (grant.gone || endsAt <= at || endsAt > at + 7 * DAY) continue;
        const all = this.#of(ofMember, ofApp);
        const isLast = all.every(
          (one) =>
            one === grant ||
            one.expiresAt <= at ||
            one.endsAt < endsAt ||
            (one.endsAt === endsAt && one.id < grant.id),
        );
        const isDue =
          grant.expiresAt > at && noticedAt[kind] === -Infinity && isLast && endsAt - createdAt > HOUR;
        const isUsed = all.some(({ usedAt }) => usedAt > at - days * DAY);
        const isNew = all.every((one) => one.noticedAt[kind] <= at - 7 * DAY);
        if (!isDue || !isUsed || !isNew || ofApp.disabled || ofMember.disabled) continue;
        noticedAt[kind] = at;
        if (kind === 'event') {
          this.#audit('access.ending', ofMember);
          this.#expected.notices.push(`access.ending to ${ofMember.id} by ${ofApp.id}`);
        } else if (this.#live(ofMember, ofApp).length > 0)
          this.#expected.told.push(
            `ending (${union(this.#live(ofMember, ofApp)).join()}) of ${ofMember.id} in ${ofApp.name}`,
          );
      }
  }

  /** Messages, notices and audit events of the server since the last call. */
  async #news() {
    await eventually(async () => {
      await this.oauth.query('SELECT tell_apps_of_access(1000)');
      return (await this.oauth.query('SELECT FROM access_changes')).length === 0 || undefined;
    });
    type Details = { scopes: string[]; reason: string | null };
    const messages = await this.oauth.query<Row & { endpoint_id: string; details: Details }>(
      'SELECT sequence AS place, * FROM webhook_deliveries WHERE sequence > $1 AND endpoint_id = ANY ($2)',
      [this.#last.webhook_deliveries, this.apps.map(({ endpoint }) => endpoint)],
    );
    const notices = await this.oauth.query<Row & { notice: string; by_id: string | null }>(
      `SELECT sequence AS place, * FROM platform_changes WHERE sequence > $1 AND type = 'notice'`,
      [this.#last.platform_changes],
    );
    const events = await this.oauth.query<Row & { details: Record<string, string | number | undefined> }>(
      `SELECT id AS place, * FROM auth_events WHERE id > $1 AND type !~ '^(sign_in|session|token.refused|authorization|webhook|calendar)'`,
      [this.#last.auth_events],
    );
    const place = (rows: readonly { place: number }[], before: number) =>
      later(before, ...rows.map((row) => row.place));
    this.#last.webhook_deliveries = place(messages, this.#last.webhook_deliveries);
    this.#last.platform_changes = place(notices, this.#last.platform_changes);
    this.#last.auth_events = place(events, this.#last.auth_events);
    const nameOf = (endpoint: string) => this.apps.find((one) => one.endpoint === endpoint)!.name;
    return {
      told: messages
        .map(
          ({ type, user_id, endpoint_id, details }) =>
            `${type.slice('access.'.length)} (${[details.scopes.join(), details.reason ?? []].flat().join(', ')}) of ${user_id} in ${nameOf(endpoint_id)}`,
        )
        .toSorted(),
      notices: notices.map(({ notice, user_id, by_id }) => `${notice} to ${user_id} by ${by_id}`).toSorted(),
      audited: events
        .map(({ type, user_id, details: { duration: chosen, grants, grant } }) => {
          const said = type === 'client.reviewed' ? [] : [grants, chosen, grant];
          return [type, user_id, ...said].filter((part) => part !== undefined && part !== null).join(' ');
        })
        .toSorted(),
    };
  }

  async #accountPage({ browser, username }: Member): Promise<FormPage> {
    const page = await browser.view('/account/apps');
    return asksForPassword(page) ? browser.signIn('/account/apps', username) : page;
  }

  async #comparePages(members: readonly Member[]) {
    for (const ofMember of members.filter(({ disabled }) => !disabled)) {
      const { html } = await this.#accountPage(ofMember);
      const shown = html.split('<li class="card">').slice(1);
      for (const ofApp of this.apps) {
        const live = this.#of(ofMember, ofApp).filter((grant) => this.#isLive(grant));
        const card = shown.find((text) => text.includes(ofApp.name));
        expect([ofApp.name, card !== undefined]).toEqual([ofApp.name, live.length > 0]);
        if (!card) continue;
        const [, time = null] = /<dt>Until<\/dt><dd><time datetime="([^"]+)Z"/.exec(card) ?? [];
        this.#isMoment(time, endOf(live));
      }
    }
    for (const table of ['notice_emails', 'platform_changes', 'muted_notices'])
      expect(await this.oauth.query(`SELECT FROM ${table} WHERE user_id = ANY ($1)`, [this.#erased])).toEqual(
        [],
      );
  }
}

describe('access that members grant', () => {
  let oauth: OauthTest;
  let receiver: Receiver;
  beforeAll(async () => {
    const settings = { developerConsole: true, reviewsApps: true, assistants: true };
    oauth = await OauthTest.start({ ...settings, sweepIntervalSeconds: 1e6 });
    receiver = await Receiver.start();
  });
  afterAll(async () => {
    await oauth.close();
    await receiver.close();
  });

  it(
    'is consistent in tokens, pages, webhooks, notices and the audit log after each step of a random year',
    async () => {
      const world = await World.make(oauth, receiver);
      const seed = Number(process.env.FUZZ_SEED);
      const [steps] = fc.sample(fc.infiniteStream(step), { numRuns: 1, seed });
      for (const made of steps!) {
        const { time, grants } = world.progress;
        if (time >= 1 && grants >= 1) break;
        if (made.does === 'passTime' && time > grants) continue;
        await world.take({ ...made, seconds: Math.min(made.seconds, (4 * YEAR) / GRANTS) });
      }
      await world.end();
    },
    GRANTS * 20_000,
  );
});
