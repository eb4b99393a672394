import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SignIn } from '../../src/accounts/sign-in/sign-in.js';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { UsersService } from '../../src/accounts/users.service.js';
import { SignInMethods } from '../../src/accounts/sign-in/sign-in-methods.js';
import { AUTH_EVENTS, type AuthEventType, type LoneEvent } from '../../src/audit/audit.js';
import { ApiKeyAuthenticator } from '../../src/auth/api-keys/api-key-authenticator.js';
import type { Caller } from '../../src/auth/principal.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { CalendarLinks } from '../../src/calendar/calendar-links.js';
import { AppTesters } from '../../src/clients/app-testers.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { DOCS_CLIENT, registerDocsClient } from '../../src/clients/own-clients.js';
import { ClientReviews } from '../../src/clients/reviews.js';
import { SigningKeysService } from '../../src/clients/signing-keys.service.js';
import { NoticeChoices } from '../../src/member-pages/notices/notice-choices.js';
import { newFormId } from '../../src/member-pages/rendering/pages.js';
import { PasskeyCeremonies } from '../../src/member-pages/sign-in/passkey-ceremonies.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import { WebhookDeliveries } from '../../src/webhooks/webhook-deliveries.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { everyRow, withoutAudit } from '../support/audit.js';
import { thorough } from '../support/database.js';
import { achievement, event, importFiles, user } from '../support/import-files.js';
import { PASSWORD, type Browser, type FormPage, type OauthTest } from '../support/oauth.js';
import {
  atSecurity,
  Authenticator,
  memberWithPasskey,
  optionsFor,
  startWithPasskeys,
} from '../support/passkeys.js';

let oauth: OauthTest;
let users: UsersService;
let keys: ApiKeysService;
let clients: ClientsService;
let reviews: ClientReviews;
let webhooks: WebhooksService;
let access: ConnectedApps;
let links: CalendarLinks;
let testers: AppTesters;
let ways: SignInMethods;
beforeAll(async () => {
  oauth = await startWithPasskeys({ developerConsole: true, sweepIntervalSeconds: 86_400 });
  const { dataSource, api } = oauth;
  await api.app.get(PeriodicWork).beforeApplicationShutdown(); // periodic work would send messages and record their outcome
  users = new UsersService(dataSource);
  keys = new ApiKeysService(dataSource, api.config);
  clients = new ClientsService(dataSource, api.config);
  reviews = new ClientReviews(dataSource);
  webhooks = new WebhooksService(dataSource, api.config);
  access = new ConnectedApps(dataSource);
  ways = new SignInMethods(dataSource);
  testers = api.app.get(AppTesters, { strict: false });
  links = api.app.get(CalendarLinks, { strict: false });
});
afterAll(() => oauth.close());

const BY = { actor: 'user', ip: null } as const;
const NEW_PASSWORD = 'seven quiet herons wade';

type Act = () => Promise<unknown>;

const query = <Row>(sql: string, values: unknown[] = []) => oauth.query<Row>(sql, values);

/** Fails if the response reports an error. */
async function sent(response: Promise<Response>): Promise<void> {
  const { status } = await response;
  if (status >= 400) throw new Error(`the response is ${status}`);
}

const newKey = async (userId?: number) =>
  keys.create({
    userId: userId ?? (await oauth.member()).id,
    name: 'key',
    scopes: ['profile:read'],
    environment: 'test',
    cidrs: [],
    expiresInSeconds: 3600,
    actor: 'admin',
  });
/** An app without sign-ins, so that no message is sent to it. */
const newWebhook = async (clientId?: string) =>
  webhooks.create({
    url: 'https://receiver.example/',
    types: ['profile.updated'],
    clientId: clientId ?? (await oauth.client()),
    actor: 'admin',
  });

const APPLICATION = {
  purpose: 'Maps.',
  policy_uri: 'https://app.example/',
  reasons: { 'events:read': 'To map.' },
};

async function ownApp() {
  const owner = { userId: (await oauth.member()).id, ip: null };
  return { owner, id: await oauth.client({ owner, actor: 'user', scopes: ['events:read'] }) };
}

/** A member invited by the owner of an app. */
async function invited() {
  const app = await ownApp();
  const tester = await oauth.member();
  await testers.invite(app.id, tester.username, app.owner);
  return { ...app, tester };
}

async function ownWebhook() {
  const owner = { userId: (await oauth.member()).id, ip: null };
  const { id } = await newWebhook(await oauth.client({ owner, actor: 'user' }));
  return { id, owner };
}

/** A member at one of the account pages. */
async function at(path: string): Promise<{ id: number; browser: Browser; page: FormPage }> {
  const { id, username } = await oauth.member();
  const { browser } = await atSecurity(oauth, username);
  return { id, browser, page: await browser.view(path) };
}

/** A member with two sessions, who granted an app access. */
async function withApp(): Promise<{ id: number; clientId: string; refreshToken: string }> {
  const { id, username } = await oauth.member();
  const clientId = await oauth.client();
  await atSecurity(oauth, username);
  const { refresh_token: refreshToken } = await oauth.tokens(clientId, username);
  return { id, clientId, refreshToken };
}

const redeemed = async (form: Record<string, string>) => {
  const { status, body } = await oauth.token(form);
  if (status !== 200) throw new Error(JSON.stringify(body));
};

/** A browser at the consent page of an app. */
async function atConsent(): Promise<{ browser: Browser; page: FormPage }> {
  const { username } = await oauth.member();
  const browser = oauth.browser();
  const page = await browser.view(oauth.request(await oauth.client()).url);
  const consent = await browser.submit(page, { username, password: PASSWORD }, /\/sign-in$/);
  return { browser, page: consent as FormPage };
}

/** The page of a change of sign-in methods: its event is recorded in the same transaction. */
const atSignInMethods = () => at('/account/security');
async function withPasskey() {
  const { browser, id } = await memberWithPasskey(oauth);
  const [passkey] = await ways.listPasskeys(id);
  const page = await browser.view('/account/security');
  return { id, browser, page, passkey: passkey!.id };
}

async function withLink(): Promise<number> {
  const { id } = await oauth.member();
  await links.create(id, 'phone', BY);
  return id;
}

/** The recorded event type, the act's name, its preparation, and the act. */
function act<T>(
  type: AuthEventType,
  name: string,
  prepare: () => Promise<T>,
  perform: (of: T) => Promise<unknown>,
) {
  const prepared = async (): Promise<Act> => {
    const of = await prepare();
    return () => perform(of);
  };
  return [type, name, prepared] as const;
}
const nothing = () => Promise.resolve();
const member = () => oauth.member();
const client = () => oauth.client();

const ACTS = [
  act('user.created', 'creating a member', nothing, () =>
    users.create({ username: `new-${Date.now()}` }, 'admin'),
  ),
  act('user.updated', 'changing a member', member, ({ id }) => users.update(id, { bio: 'other' }, 'admin')),
  act('user.password_set', 'setting a password', member, ({ id }) =>
    users.setPassword(id, NEW_PASSWORD, 'admin'),
  ),
  act('user.password_set', 'changing a member’s own password', atSignInMethods, ({ browser, page }) => {
    const fields = { current_password: PASSWORD, new_password: NEW_PASSWORD };
    return sent(browser.post(page, '/account/security/password', fields));
  }),
  act('user.password_switched', 'disabling the password', withPasskey, ({ browser, page }) =>
    sent(browser.post(page, '/account/security/password/off')),
  ),
  act('user.disabled', 'disabling a member', member, ({ id }) => users.disable(id, 'admin')),
  act(
    'user.enabled',
    'enabling a member',
    async () => {
      const made = await member();
      await users.disable(made.id, 'admin');
      return made;
    },
    ({ id }) => users.enable(id, 'admin'),
  ),
  act('user.erased', 'erasing a member', withApp, ({ id }) =>
    eraseMembers(oauth.dataSource, [id], { actor: 'admin' }),
  ),
  act('passkey.added', 'adding a passkey', atSignInMethods, async ({ browser, page }) => {
    const credential = new Authenticator(oauth.issuer).register(await optionsFor(browser, page));
    await sent(browser.post(page, '/account/security/passkeys', { credential, name: 'Key' }));
  }),
  act('passkey.removed', 'removing a passkey', withPasskey, ({ browser, page, passkey }) =>
    sent(browser.post(page, `/account/security/passkeys/${passkey}/remove`)),
  ),
  act('passkey.removed', 'removing a lost passkey', withPasskey, ({ id, passkey }) =>
    ways.removeLostPasskey(id, passkey),
  ),
  act(
    'sign_in.succeeded',
    'using a passkey',
    async () => {
      const { id } = await withPasskey();
      const find = 'SELECT credential_id AS id FROM passkeys WHERE user_id = $1';
      const [credential] = await query<{ id: Buffer }>(find, [id]);
      const passkeys = oauth.api.app.get(PasskeyCeremonies, { strict: false });
      return { passkeys, found: await passkeys.find(credential!.id) };
    },
    ({ passkeys, found }) => passkeys.use(found!, { signCount: 77, backedUp: true }, {}),
  ),
  act('session.ended', 'ending one session', withApp, async ({ id }) => {
    const { shown } = await access.listSessions(id);
    return access.endSession(id, shown[0]!.id, BY);
  }),
  act('session.ended', 'ending the other sessions', withApp, ({ id }) => access.endOtherSessions(id, BY, [])),
  act(
    'session.ended',
    'ending sessions by setting a new password',
    async () => {
      const made = await atSignInMethods();
      const find = 'SELECT username FROM users WHERE id = $1';
      const [{ username }] = (await query(find, [made.id])) as [{ username: string }];
      await atSecurity(oauth, username);
      return made;
    },
    ({ browser, page }) => {
      const fields = { current_password: PASSWORD, new_password: NEW_PASSWORD, end_others: 'yes' };
      return sent(browser.post(page, '/account/security/password', fields));
    },
  ),
  act(
    'session.signed_out',
    'signing out',
    () => at('/account/apps'),
    ({ browser, page }) => sent(browser.post(page, '/account/sign-out')),
  ),
  act('consent.granted', 'allowing an app', atConsent, ({ browser, page }) => {
    const fields = { decision: 'allow', scope: 'profile:read' };
    return sent(browser.post(page, `${page.url.pathname}/consent`, fields));
  }),
  act('consent.denied', 'denying an app', atConsent, ({ browser, page }) =>
    sent(browser.post(page, `${page.url.pathname}/consent`, { decision: 'deny' })),
  ),
  act('access.revoked', 'revoking the access of an app', withApp, ({ id, clientId }) =>
    access.revoke(id, clientId, BY),
  ),
  act('access.revoked', 'revoking all access', withApp, ({ id }) => access.revokeAll(id, BY)),
  act('access.changed', 'changing the end of access', withApp, ({ id, clientId }) =>
    access.changeEnd(id, clientId, '180', BY),
  ),
  act(
    'token.issued',
    'redeeming a code',
    async () => oauth.code(await client(), (await member()).username),
    redeemed,
  ),
  act('token.refreshed', 'using a refresh token', withApp, ({ clientId, refreshToken }) =>
    redeemed({ grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }),
  ),
  act(
    'token.reused',
    'reusing a refresh token',
    async () => {
      const made = await withApp();
      await oauth.refresh(made.clientId, made.refreshToken);
      await oauth.age('oauth_tokens', 11);
      return made;
    },
    async ({ clientId, refreshToken }) => {
      const { status } = await oauth.refresh(clientId, refreshToken);
      if (status >= 500) throw new Error(`the response is ${status}`);
    },
  ),
  act('grant.revoked', 'revoking a token', withApp, async ({ clientId, refreshToken }) => {
    const { status } = await oauth.post('/oauth/revoke', { client_id: clientId, token: refreshToken });
    if (status !== 200) throw new Error(`the response is ${status}`);
  }),
  act('key.created', 'creating a key', member, ({ id }) => newKey(id)),
  act(
    'key.created',
    'creating a member’s own key',
    () => at('/developer/new-key'),
    ({ browser, page }) => {
      const fields = { form: newFormId(), name: 'key', days: '1', scopes: 'profile:read' };
      return sent(browser.post(page, '/developer/keys', fields));
    },
  ),
  act('key.ending', 'noticing that a key in use ends soon', newKey, ({ id }) =>
    // In one transaction, so that the server's periodic work cannot report the key first.
    oauth.dataSource.transaction(async (manager) => {
      const use = 'INSERT INTO api_key_usage (key_id, last_used_at, uses_count) VALUES ($1, now(), 1)';
      await manager.query(use, [id]);
      await manager.query('SELECT report_ending_keys(1000)');
    }),
  ),
  act('access.ending', 'noticing that access in use ends soon', withApp, ({ clientId }) =>
    oauth.dataSource.transaction(async (manager) => {
      for (const statement of [
        `UPDATE oauth_grants SET access_ends_at = now() + interval '1 day' WHERE client_id = $1`,
        `INSERT INTO oauth_grant_usage (grant_id, last_used_at) SELECT id, now() FROM oauth_grants WHERE client_id = $1
ON CONFLICT DO NOTHING`,
      ])
        await manager.query(statement, [clientId]);
      await manager.query('SELECT report_ending_access(1000, NULL)');
    }),
  ),
  act('notice.chosen', 'muting a notice', member, ({ id }) =>
    oauth.api.app.get(NoticeChoices, { strict: false }).mute(id, 'key.created', null),
  ),
  act('key.rotated', 'rotating a key', newKey, ({ id }) => keys.rotate(id, 0, 'admin')),
  act('key.revoked', 'revoking a key', newKey, ({ id }) => keys.revoke(id, 'lost', 'admin')),
  act('key.exposed', 'noticing that a browser has a key', newKey, ({ id }) => {
    const principal = { credentialId: id, userId: null } as Caller;
    const authenticator = oauth.api.app.get(ApiKeyAuthenticator, { strict: false });
    return authenticator.recordExposure(principal, 'https://app.example');
  }),
  act(
    'calendar_link.created',
    'creating a calendar link',
    () => at('/account/calendar'),
    ({ browser, page }) =>
      sent(browser.post(page, '/account/calendar/create', { form: newFormId(), name: 'phone' })),
  ),
  act('calendar_link.revoked', 'revoking a calendar link', withLink, async (id) => {
    const [link] = await links.list(id);
    return links.revoke(id, link!.id, BY);
  }),
  act('calendar_link.revoked', 'revoking all calendar links', withLink, (id) =>
    links.revokeAll(id, BY, oauth.dataSource),
  ),
  act('client.created', 'registering an app', nothing, client),
  act(
    'client.created',
    'registering the API reference’s client',
    () => query('DELETE FROM oauth_clients WHERE id = $1', [DOCS_CLIENT]),
    () => registerDocsClient(oauth.dataSource, oauth.api.config),
  ),
  act('client.updated', 'changing an app', client, (id) =>
    clients.update(id, () => ({ redirect_uris: ['https://app.example/b'] }), 'admin'),
  ),
  act('client.applied', 'applying for a review', ownApp, ({ id, owner }) =>
    reviews.apply(id, APPLICATION, owner),
  ),
  ...([{ approved: true }, { rejection: 'No.' }] as const).map((result) =>
    act(
      'client.reviewed',
      JSON.stringify(result),
      async () => {
        const { id, owner } = await ownApp();
        await reviews.apply(id, APPLICATION, owner);
        return id;
      },
      (id) => reviews.review(id, result),
    ),
  ),
  act('tester.invited', 'inviting a tester', ownApp, ({ id, owner }) => testers.invite(id, 'ada', owner)),
  act('tester.accepted', 'accepting an invitation', invited, ({ id, tester }) =>
    testers.accept(tester.id, id, BY),
  ),
  act('tester.left', 'declining an invitation', invited, ({ id, tester }) =>
    testers.leave(tester.id, id, BY),
  ),
  act('tester.removed', 'removing a tester', invited, ({ id, owner, tester }) =>
    testers.remove(id, tester.username, owner),
  ),
  act(
    'client.secret_rotated',
    'rotating an app’s secret',
    () => oauth.client({ profile: 'oidc', secret_auth_method: 'client_secret_basic' }),
    (id) => clients.rotateSecret(id, { overlapSeconds: 60, expiresInSeconds: null }, 'admin'),
  ),
  act('client.disabled', 'disabling an app', client, (id) => clients.setDisabled(id, true, 'admin')),
  act(
    'client.enabled',
    'enabling an app',
    async () => {
      const id = await client();
      await clients.setDisabled(id, true, 'admin');
      return id;
    },
    (id) => clients.setDisabled(id, false, 'admin'),
  ),
  act('client.deleted', 'deleting an app', client, (id) => clients.delete(id, 'admin')),
  act('signing_key.rotated', 'rotating the signing keys', nothing, () =>
    new SigningKeysService(oauth.dataSource, oauth.api.config).rotate(),
  ),
  act('webhook.created', 'registering a webhook', client, newWebhook),
  act('webhook.tested', 'sending a test message of one’s own webhook', ownWebhook, ({ id, owner }) =>
    webhooks.queueTest(id, owner, oauth.dataSource.manager),
  ),
  act('webhook.deleted', 'deleting one’s own webhook', ownWebhook, ({ id, owner }) =>
    webhooks.delete(id, owner, oauth.dataSource.manager),
  ),
  act('webhook.rotated', 'giving a webhook a new secret', newWebhook, ({ id }) =>
    webhooks.rotate(id, 60, 'admin'),
  ),
  act(
    'webhook.redelivered',
    'sending a message to a webhook again',
    async () => {
      const [message] = await query<{ id: string }>(
        `INSERT INTO webhook_deliveries (endpoint_id, type, user_id, thing_id, changed_at, status, ended_at)
VALUES ($1, 'profile.updated', 1, 1, now(), 'delivered', now()) RETURNING replace(id::text, '-', '') AS id`,
        [(await newWebhook()).id],
      );
      return `msg_${message!.id}`;
    },
    (id) => webhooks.redeliver(id, 'admin'),
  ),
  act('webhook.disabled', 'disabling a webhook', newWebhook, ({ id }) => webhooks.disable(id, 'admin')),
  act(
    'webhook.disabled',
    'noticing that a webhook fails',
    async () => {
      const { id } = await newWebhook();
      await query(`UPDATE webhook_endpoints SET failing_since = now() - interval '9 days' WHERE id = $1`, [
        id,
      ]);
      return { endpoint_id: id, type: 'profile.updated', sequence: 1, lease: '2026-01-01', attempts: 1 };
    },
    (message) => {
      const attempt = { taken: false, status: 500, error: null, seconds: 0.1, gone: false, retryAfter: 0 };
      return new WebhookDeliveries(oauth.dataSource).finish(message as never, attempt as never);
    },
  ),
  // With ids of no other member: another act may have erased that member.
  act('platform.imported', 'an import', nothing, () =>
    importFiles(oauth.dataSource, {
      users: [user(1_000)],
      events: [event(1_000, { organizer_id: 1_000 })],
      achievements: [achievement(1_000)],
    }),
  ),
  act('platform.imported', 'an import in batches', nothing, () =>
    importFiles(oauth.dataSource, { users: [user(9_000)] }, { batch: 1 }),
  ),
];

/** Acts without a database change. */
const ALONE: readonly LoneEvent['type'][] = [
  'sign_in.succeeded',
  'sign_in.refused',
  'authorization.refused',
  'token.refused',
  'user.exported',
  'user.password_reset_sent',
  'audit.pruned',
];

/** One statement records the event and deletes the email: test/oauth/notices.e2e-spec.ts. */
const IN_ONE_STATEMENT: readonly AuthEventType[] = ['notice.undelivered'];

thorough.describe('an act whose audit event cannot be written', () => {
  it('is tested for every event type, except types that this test lists', () => {
    const listed = new Set<string>([...ACTS.map(([type]) => type), ...ALONE, ...IN_ONE_STATEMENT]);
    expect([...listed].toSorted()).toEqual(Object.keys(AUTH_EVENTS).toSorted());
  });

  it.each(ACTS)('changes nothing: %s, %s', async (type, _, prepare) => {
    const perform = await prepare();
    await oauth.api.app.get(SignIn, { strict: false }).onApplicationShutdown(); // a sign-in may upgrade the password hash
    const before = await everyRow(oauth.dataSource);
    await expect(withoutAudit(oauth.dataSource, type, perform)).rejects.toThrow(
      /the trail is full|response is 50\d|"server_error"/,
    );
    expect(await everyRow(oauth.dataSource)).toEqual(before);
    await perform();
    expect(await everyRow(oauth.dataSource)).not.toEqual(before);
  });
});
