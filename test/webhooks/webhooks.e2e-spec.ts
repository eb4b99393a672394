import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import { createApp } from '../../src/app.js';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { Secrets } from '../../src/crypto/secrets.js';
import { ClientsService } from '../../src/clients/clients.service.js';
import { ConnectedApps } from '../../src/clients/connected-apps.js';
import { Meter } from '../../src/runtime/meter.js';
import { Sweeper } from '../../src/operations/sweeper/sweeper.js';
import { RETRY_AFTER } from '../../src/runtime/outbox.js';
import { PublicHttps } from '../../src/runtime/public-https.js';
import { readScope, RESOURCES } from '../../src/resources/resources.js';
import { WebhookSecrets, WebhookSender } from '../../src/webhooks/webhook-sender.js';
import { WEBHOOK_TYPES, WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { endApp } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { thorough } from '../support/database.js';
import { freePort, OauthTest } from '../support/oauth.js';
import { isVerified, Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';

/** The meter's record of an unsent message. */
const WITHHELD = ['webhook_attempts_total', { outcome: 'withheld' }, 1];
const ALL_SCOPES = RESOURCES.map(readScope).join(' ');

interface Delivery {
  readonly id: string;
  readonly type: string;
  readonly user_id: number;
  readonly status: string;
  readonly attempts: number;
  readonly response_status: number | null;
  readonly error: string | null;
  /** Seconds from the last attempt to the next. */
  readonly wait: number;
}

const isDelivered = ({ status }: Delivery) => status === 'delivered';

describe('webhooks', () => {
  let oauth: OauthTest;
  let webhooks: WebhooksService;
  let receiver: Receiver;

  beforeAll(async () => {
    oauth = await OauthTest.start();
    webhooks = new WebhooksService(oauth.dataSource, oauth.api.config);
  });
  afterAll(() => oauth.close());
  beforeEach(async () => {
    // A new endpoint gets changes since the oldest open transaction, even those of an earlier test.
    await oauth.api.platform.settleChanges();
    receiver = await Receiver.start();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    for (const { id } of await webhooks.list()) await webhooks.disable(id, 'admin');
    await receiver.close();
  });

  const query = <T>(sql: string, values: unknown[] = []) => oauth.query<T>(sql, values);
  const rename = (id: number, bio: string) => query('UPDATE users SET bio = $2 WHERE id = $1', [id, bio]);
  const deliveries = (endpoint: string) =>
    query<Delivery>(
      `SELECT 'msg_' || replace(id::text, '-', '') AS id, type, user_id, status, attempts, response_status, error,
  round(EXTRACT(epoch FROM due_at - attempted_at))::integer AS wait FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY sequence`,
      [endpoint],
    );
  const disablingsOf = (id: string) =>
    query(
      `SELECT actor, key_id, details FROM auth_events WHERE type = 'webhook.disabled' AND details->>'webhook' = $1`,
      [id],
    );
  /** Repeats the query until its result matches: the server records a delivery after the endpoint's response. */
  const settled = (endpoint: string, isSo: (found: Delivery[]) => boolean) =>
    eventually(async () => {
      const found = await deliveries(endpoint);
      return isSo(found) ? found : undefined;
    });
  /** Advances time for messages that wait for their next attempt. */
  const pass = (seconds: number) =>
    query(
      `UPDATE webhook_deliveries SET due_at = due_at - make_interval(secs => $1) WHERE status = 'pending'`,
      [seconds],
    );

  /** An endpoint of an app or a key; by default the platform's, for profile changes. */
  const endpoint = (
    of: { clientId?: string; keyId?: string } = {},
    types: readonly string[] = ['profile.updated'],
  ) => webhooks.create({ url: receiver.url, types, ...of, actor: 'admin' });
  const answerWith = (status: number, headers = {}) => {
    receiver.respond = (_, response) => void response.writeHead(status, headers).end();
  };

  /** A member with a key, and an endpoint of that key. */
  async function keyed(types: readonly string[] = WEBHOOK_TYPES, scopes = ALL_SCOPES) {
    const userId = await oauth.api.platform.user();
    const key = await oauth.api.key(userId, scopes.split(' '));
    const keyId = key.split('_')[2]!;
    const { id, secret } = await endpoint({ keyId }, types);
    return { userId, key, keyId, id, secret };
  }

  describe('a message', () => {
    it('names the changed record and the member without content, and the Standard Webhooks library verifies the message', async () => {
      const { userId, secret } = await keyed();
      await rename(userId, 'a secret bio');
      await receiver.untilReceived(1);
      const [received] = receiver.received;
      expect(received!.message).toEqual({
        type: 'profile.updated',
        timestamp: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
        data: { member_id: userId, resource: 'profile', id: userId, kind: 'updated' },
      });
      expect(received!.headers).toMatchObject({
        'content-type': 'application/json',
        'webhook-id': expect.stringMatching(/^msg_[0-9a-f]{32}$/),
        'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
        'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
      });
      expect(isVerified(secret, received!)).toBe(true);
      expect(isVerified(secret, { ...received!, body: received!.body.replace('updated', 'removed') })).toBe(
        false,
      );
    });

    it('is only of the requested types', async () => {
      const { userId, id } = await keyed(['events.removed', 'connections.updated']);
      const event = await oauth.api.platform.event();
      await oauth.api.platform.participant(event, userId);
      const connection = await oauth.api.platform.connection(await oauth.api.platform.user(), userId);
      await receiver.untilReceived(1); // otherwise the participation's message may already be `removed`
      await query('DELETE FROM participants WHERE user_id = $1', [userId]);
      await receiver.untilReceived(2);
      expect(receiver.told.toSorted()).toEqual([
        `connections.updated ${connection} of ${userId}`,
        `events.removed ${event} of ${userId}`,
      ]);
      expect((await deliveries(id)).map(({ type }) => type).toSorted()).toEqual([
        'connections.updated',
        'events.removed',
      ]);
    });
  });

  describe('an app', () => {
    const apps = () => new ConnectedApps(oauth.dataSource);
    const clients = () => new ClientsService(oauth.dataSource, oauth.api.config);

    it('is notified only about members who granted the app the scope', async () => {
      const clientId = await oauth.client();
      const { id } = await endpoint({ clientId }, ['profile.updated', 'events.updated']);
      const [allowed, partly, revoked, stranger] = await atOnce(4, () => oauth.member());
      await oauth.tokens(clientId, allowed!.username);
      await oauth.tokens(clientId, partly!.username, { scope: 'openid events:read' });
      await oauth.tokens(clientId, revoked!.username);
      await apps().revoke(revoked!.id, clientId, { actor: 'user' });
      const event = await oauth.api.platform.event();
      for (const { id: userId } of [allowed!, partly!, revoked!, stranger!]) {
        await rename(userId, 'new');
        await oauth.api.platform.participant(event, userId);
      }
      await receiver.untilReceived(3);
      expect(receiver.told.toSorted()).toEqual(
        [
          `events.updated ${event} of ${allowed!.id}`,
          `events.updated ${event} of ${partly!.id}`,
          `profile.updated ${allowed!.id} of ${allowed!.id}`,
        ].toSorted(),
      );
      expect(await deliveries(id)).toHaveLength(3);
    });

    thorough.it.each<[string, (member: { id: number }, clientId: string) => Promise<unknown>]>([
      ['its access was revoked', ({ id }, clientId) => apps().revoke(id, clientId, { actor: 'user' })],
      [
        'the member was disabled',
        ({ id }) => query('UPDATE users SET disabled_at = now() WHERE id = $1', [id]),
      ],
      [
        'the app was disabled',
        (_, id) => query('UPDATE oauth_clients SET disabled_at = now() WHERE id = $1', [id]),
      ],
      [
        'the app lost the scope',
        (_, id) => clients().update(id, () => ({ scopes: ['events:read'] }), 'admin'),
      ],
      ['the member’s tokens expired', () => oauth.age('oauth_tokens', 400 * 86_400)],
    ])('does not get pending messages after %s', async (_, end) => {
      const clientId = await oauth.client();
      const { id } = await endpoint({ clientId });
      const member = await oauth.member();
      await oauth.tokens(clientId, member.username);
      answerWith(503, { 'Retry-After': '3600' }); // otherwise, it might be sent again before `end`
      await rename(member.id, 'first');
      await settled(id, ([first]) => first?.attempts === 1);
      const count = jest.spyOn(oauth.api.app.get(Meter), 'count').mockClear();
      await end(member, clientId);
      await pass(3600);
      const [first] = await settled(id, ([found]) => found!.status !== 'pending');
      expect(first).toMatchObject({ status: 'withheld', attempts: 1 });
      await eventually(() => count.mock.calls.find((call) => isDeepStrictEqual(call, WITHHELD)));
      expect(receiver.received).toHaveLength(1);
    });

    thorough.it('loses its endpoints when an admin deletes the app', async () => {
      const clientId = await oauth.client();
      const { id } = await endpoint({ clientId });
      await clients().delete(clientId, 'admin');
      await expect(webhooks.find(id)).rejects.toThrow(`There is no webhook ${id}`);
    });
  });

  describe('a key', () => {
    it('gets no message about a change after its revocation', async () => {
      const { userId, keyId, id } = await keyed(['profile.updated']);
      await new ApiKeysService(oauth.dataSource, oauth.api.config).revoke(keyId, 'lost', 'admin');
      await rename(userId, 'x');
      const other = await keyed(['profile.updated']);
      await rename(other.userId, 'y'); // arrives after the revocation
      await receiver.untilReceived(1);
      expect(receiver.told).toEqual([`profile.updated ${other.userId} of ${other.userId}`]);
      expect([(await webhooks.find(id)).status, await deliveries(id)]).toEqual(['no_access', []]);
    });

    thorough.it('passes its endpoints to its successor when rotated', async () => {
      const { userId, keyId, id } = await keyed(['profile.updated']);
      const keys = new ApiKeysService(oauth.dataSource, oauth.api.config);
      const { id: next } = await keys.rotate(keyId, 0, 'admin');
      await rename(userId, 'x');
      await receiver.untilReceived(1);
      expect((await webhooks.find(id)).key_id).toBe(next);
    });

    thorough.it('of an erased member is deleted with its endpoints and the member’s messages', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      await endpoint();
      await rename(userId, 'x');
      await receiver.untilReceived(2);
      await oauth.dataSource.transaction((manager) => eraseMembers(manager, [userId], { actor: 'admin' }));
      await expect(webhooks.find(id)).rejects.toThrow('There is no webhook');
      expect(await query('SELECT FROM webhook_deliveries WHERE user_id = $1', [userId])).toEqual([]);
    });
  });

  describe('the platform', () => {
    it('is notified of a change once, not once per member who sees the change', async () => {
      const { id } = await endpoint({}, WEBHOOK_TYPES);
      const { platform } = oauth.api;
      const event = await platform.event();
      const members = [await platform.user(), await platform.user()];
      for (const member of members) await platform.participant(event, member);
      await query('UPDATE events SET title = $2 WHERE id = $1', [event, 'Another title']);
      await receiver.untilReceived(3);
      expect(receiver.told.toSorted()).toEqual(
        [...members, null].map((member) => `events.updated ${event} of ${member}`).toSorted(),
      );
      expect(await deliveries(id)).toHaveLength(3);
    });
  });

  describe('a failing endpoint', () => {
    thorough.it('gets a message again seven times within 28 h; then the message is dead', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      answerWith(500);
      await rename(userId, 'x');
      const waits: number[] = [];
      for (const [i] of RETRY_AFTER.entries()) {
        const [found] = await settled(id, ([first]) => first?.attempts === i + 1);
        expect(found).toMatchObject({ status: 'pending', response_status: 500 });
        waits.push(found!.wait);
        await pass(found!.wait);
      }
      expect(waits).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 36_000]);
      const [last] = await settled(id, ([first]) => first!.status !== 'pending');
      expect(last).toMatchObject({ status: 'dead', attempts: 8 });
      expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
      expect(receiver.received).toHaveLength(8);
      // A manual redelivery sends it once more, with the same id.
      answerWith(204);
      expect(await webhooks.redeliver(last!.id, 'admin')).toBe(1);
      await receiver.untilReceived(9);
      expect(receiver.received.at(-1)!.id).toBe(last!.id);
      const [done] = await settled(id, ([first]) => first!.status === 'delivered');
      expect(done).toMatchObject({ attempts: 1, response_status: 204, error: null });
      expect((await webhooks.find(id)).failing_since).toBeNull();
    });

    thorough.it('gets a member’s messages in order after a failure, others’ without delay', async () => {
      const { userId, id } = await keyed(['profile.updated', 'events.updated']);
      const other = await keyed(['profile.updated']);
      let failures = 1;
      receiver.respond = ({ message }, response) => {
        const fails = message.data.member_id === userId && failures-- > 0;
        response.writeHead(fails ? 503 : 204, { 'Retry-After': '3600' }).end();
      };
      await rename(userId, 'first');
      await settled(id, ([first]) => first?.attempts === 1);
      const event = await oauth.api.platform.event();
      await oauth.api.platform.participant(event, userId);
      await settled(id, (found) => found.length === 2);
      await rename(other.userId, 'in between');
      await receiver.untilReceived(2);
      await pass(3600);
      await receiver.untilReceived(4);
      expect(receiver.told).toEqual([
        `profile.updated ${userId} of ${userId}`,
        `profile.updated ${other.userId} of ${other.userId}`,
        `profile.updated ${userId} of ${userId}`,
        `events.updated ${event} of ${userId}`,
      ]);
    });

    thorough.it('gets a member’s later messages while an earlier message fails repeatedly', async () => {
      const { userId, id } = await keyed(['profile.updated', 'events.updated']);
      receiver.respond = ({ message }, response) =>
        void response.writeHead(message.type === 'profile.updated' ? 500 : 204).end();
      await rename(userId, 'first');
      await settled(id, ([first]) => first?.attempts === 1);
      await pass(5);
      await settled(id, ([first]) => first!.attempts === 2);
      await oauth.api.platform.participant(await oauth.api.platform.event(), userId);
      const [first] = await settled(id, ([, second]) => second?.status === 'delivered');
      expect(first).toMatchObject({ status: 'pending', attempts: 2 });
    });

    it('is disabled after it responds with 410, and an audit event records the reason', async () => {
      const { userId, keyId, id } = await keyed(['profile.updated']);
      answerWith(410);
      await rename(userId, 'x');
      const [message] = await settled(id, ([first]) => first?.status === 'dead');
      expect(message).toMatchObject({ attempts: 1, response_status: 410 });
      expect(await webhooks.find(id)).toMatchObject({ status: 'disabled', disabled_because: 'gone' });
      expect(await disablingsOf(id)).toEqual([
        { actor: 'system', key_id: keyId, details: { webhook: id, reason: 'gone' } },
      ]);
    });

    it.each([
      [429, '3600', 3_600],
      [503, () => new Date(Date.now() + 7_200_000).toUTCString(), 7_200],
      [503, '2', 5],
      [429, '9999999', 36_000],
      [429, 'soon', 5],
      [500, '3600', 5],
    ])('that responds %s with Retry-After: %s gets a retry after %s s', async (status, after, wait) => {
      const { userId, id } = await keyed(['profile.updated']);
      const header = typeof after === 'string' ? after : after();
      answerWith(status, { 'Retry-After': header });
      await rename(userId, 'x');
      const [message] = await settled(id, ([first]) => first?.attempts === 1);
      expect(message!.wait).toBeLessThanOrEqual(wait);
      expect(message!.wait).toBeGreaterThan(wait - (header.includes('GMT') ? 600 : 1));
    });

    thorough.it('is disabled after five days of failures; an audit event records the reason', async () => {
      const { userId, keyId, id } = await keyed(['profile.updated']);
      answerWith(500);
      await rename(userId, 'x');
      await settled(id, ([first]) => first?.attempts === 1);
      const shift = (interval: string) =>
        query(`UPDATE webhook_endpoints SET failing_since = failing_since - $2::interval WHERE id = $1`, [
          id,
          interval,
        ]);
      await shift('4 days 23 hours');
      await pass(5);
      await settled(id, ([first]) => first!.attempts === 2);
      expect((await webhooks.find(id)).status).toBe('failing');
      await shift('1 hour');
      await pass(300);
      await settled(id, ([first]) => first!.status === 'dead');
      expect(await webhooks.find(id)).toMatchObject({ status: 'disabled', disabled_because: 'failing' });
      expect(await disablingsOf(id)).toEqual([
        { actor: 'system', key_id: keyId, details: { webhook: id, reason: 'failing' } },
      ]);
      await expect(webhooks.redeliver(id, 'admin')).rejects.toThrow('was disabled');
    });

    thorough.it('that redirects is recorded with its status; the redirect is not followed', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      const elsewhere = await Receiver.start();
      receiver.respond = (_, response) => {
        if (receiver.received.length === 1) response.writeHead(307, { Location: elsewhere.url }).end();
        else response.destroy();
      };
      await rename(userId, 'x');
      expect((await settled(id, ([first]) => first?.attempts === 1))[0]).toMatchObject({
        response_status: 307,
        error: null,
      });
      await pass(5);
      expect((await settled(id, ([first]) => first!.attempts === 2))[0]).toMatchObject({
        response_status: null,
        error: expect.stringContaining('ECONNRESET'),
      });
      expect(elsewhere.received).toEqual([]);
      await elsewhere.close();
    });

    thorough.it('whose response never ends is disconnected; the message counts as accepted', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      receiver.respond = (_, response) => {
        response.writeHead(200);
        const more = (): void => {
          if (!response.destroyed && response.write('x'.repeat(65_536))) setImmediate(more);
          else response.once('drain', more);
        };
        more();
      };
      await rename(userId, 'x');
      const [first] = await settled(id, ([found]) => found?.status === 'delivered');
      expect(first).toMatchObject({ attempts: 1, response_status: 200 });
      await receiver.until(() => receiver.underWay === 0);
    });
  });

  thorough.describe('a slow endpoint', () => {
    it('has at most eight messages in progress, and delays no other endpoint', async () => {
      const held: (() => void)[] = [];
      receiver.respond = (_, response) => void held.push(() => response.writeHead(204).end());
      const { id } = await endpoint();
      const members = await atOnce(12, () => oauth.api.platform.user());
      await query(`UPDATE users SET bio = 'x' WHERE id = ANY ($1)`, [members]);
      await receiver.until(() => held.length === 8);
      const quick = await Receiver.start();
      await webhooks.create({ url: quick.url, types: ['profile.updated'], actor: 'admin' });
      await rename(members[0]!, 'y');
      await quick.untilReceived(1);
      expect(receiver.maxInProgress).toBe(8);
      answerWith(204);
      for (const answer of held) answer();
      await settled(id, (found) => found.length === 13 && found.every(isDelivered));
      expect(receiver.maxInProgress).toBe(8);
      await quick.close();
    });

    it('with an endless queue does not delay messages of other endpoints', async () => {
      const busy = await atOnce(4, () => endpoint({}, ['events.removed']));
      const add = (endpoint: string, count: number) =>
        query(
          `INSERT INTO webhook_deliveries (endpoint_id, user_id, type, thing_id, changed_at)
SELECT $1, 1 + random() * 1e6, 'events.removed', 1, now() FROM generate_series(1, $2)`,
          [endpoint, count],
        );
      const quick = await Receiver.start();
      let next = 0;
      receiver.respond = (_, response) =>
        // New messages arrive as fast as they are sent.
        void add(busy[next++ % busy.length]!.id, quick.received.length === 0 ? 1 : 0).then(() =>
          response.writeHead(204).end(),
        );
      const { userId } = await keyed(['profile.updated']);
      await webhooks.create({ url: quick.url, types: ['profile.updated'], actor: 'admin' });
      for (const { id } of busy) await add(id, 100);
      await receiver.untilReceived(100);
      await rename(userId, 'x');
      await quick.untilReceived(1);
      expect(quick.told).toEqual([`profile.updated ${userId} of ${userId}`]);
      await quick.close();
    });

    it('gets a member’s messages one after the other', async () => {
      const { userId, id } = await keyed(['events.updated']);
      const underWay: string[] = [];
      let most = 0;
      receiver.respond = ({ id: message }, response) => {
        underWay.push(message);
        most = Math.max(most, underWay.length);
        setImmediate(() => {
          underWay.splice(underWay.indexOf(message), 1);
          response.writeHead(204).end();
        });
      };
      const events: number[] = [];
      for (let i = 0; i < 10; i++) {
        const event = await oauth.api.platform.event();
        await oauth.api.platform.participant(event, userId);
        events.push(event);
      }
      await settled(id, (found) => found.length === 10 && found.every(isDelivered));
      expect(receiver.told).toEqual(events.map((event) => `events.updated ${event} of ${userId}`));
      expect(most).toBe(1);
    });

    it('times out after 10 s', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      receiver.respond = () => undefined;
      await rename(userId, 'x');
      await receiver.untilReceived(1);
      await receiver.until(() => receiver.underWay === 0);
      const [first] = await settled(id, ([found]) => found!.attempts === 1);
      expect(first).toMatchObject({ response_status: null, error: 'no response within 10 s' });
    });
  });

  describe('a webhook secret', () => {
    it('that is rotated signs messages together with the new secret until the overlap ends', async () => {
      const { userId, id, secret } = await keyed(['profile.updated']);
      const next = await webhooks.rotate(id, 3600, 'admin');
      await rename(userId, 'x');
      await receiver.untilReceived(1);
      const [both] = receiver.received;
      expect(String(both!.headers['webhook-signature']).split(' ')).toHaveLength(2);
      expect([secret, next].map((each) => isVerified(each, both!))).toEqual([true, true]);
      await query(`UPDATE webhook_endpoints SET previous_secret_until = now() WHERE id = $1`, [id]);
      await rename(userId, 'y');
      await receiver.untilReceived(2);
      expect([secret, next].map((each) => isVerified(each, receiver.received[1]!))).toEqual([false, true]);
    });

    it('is stored only encrypted, and cannot be decrypted in another row', async () => {
      const { id, secret } = await keyed();
      const next = await webhooks.rotate(id, 3600, 'admin');
      const other = await keyed(['profile.updated']);
      const rows = JSON.stringify([
        await query(
          `SELECT *, encode(secret, 'escape') AS text, encode(previous_secret, 'escape') AS previous_text FROM webhook_endpoints`,
        ),
        await query('SELECT * FROM auth_events'),
        await query('SELECT * FROM webhook_deliveries'),
      ]);
      for (const each of [secret, next]) expect(rows).not.toContain(each.slice(6, 30));
      await query(
        'UPDATE webhook_endpoints SET secret = (SELECT secret FROM webhook_endpoints WHERE id = $2) WHERE id = $1',
        [other.id, id],
      );
      await rename(other.userId, 'x');
      const [first] = await settled(other.id, ([found]) => found?.attempts === 1);
      expect(first!.error).toContain('cannot be decrypted');
      expect(receiver.received).toEqual([]);
    });

    thorough.it('is encrypted again when a server with a new and the previous key starts', async () => {
      const { id, secret } = await keyed(['profile.updated']);
      const rotated = await webhooks.rotate(id, 3600, 'admin');
      const before = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
      const port = await freePort();
      const config = { ...oauth.api.config, port, secrets: new Secrets(Buffer.alloc(32, 7), before) };
      const sealed = () =>
        query<{ secret: Buffer; previous_secret: Buffer }>(
          'SELECT secret, previous_secret FROM webhook_endpoints WHERE id = $1',
          [id],
        );
      const [old] = await sealed();
      const app = await createApp(config);
      await app.listen(port, '127.0.0.1');
      try {
        await eventually(async () => {
          const [now] = await sealed();
          const isMoved =
            !now!.secret.equals(old!.secret) && !now!.previous_secret.equals(old!.previous_secret);
          return isMoved || undefined;
        });
      } finally {
        await endApp(app);
      }
      // The other instances, whose SECRET_KEY_PREVIOUS is the new key, can decrypt secrets that are encrypted again.
      const after = { ...config, secrets: new Secrets(Buffer.alloc(32, 7)) };
      const sender = new WebhookSender(after, oauth.api.app.get(PublicHttps), new WebhookSecrets(after));
      expect(await webhooks.test(id, sender)).toMatchObject({ taken: true });
      expect([secret, rotated].map((each) => isVerified(each, receiver.received.at(-1)!))).toEqual([
        true,
        true,
      ]);
    });
  });

  describe('webhook messages', () => {
    it('are deleted if delivered eight days ago, but kept while pending', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      await rename(userId, 'x');
      await settled(id, ([first]) => first?.status === 'delivered');
      answerWith(500);
      await rename(userId, 'y');
      await settled(id, ([, second]) => second?.attempts === 1);
      await query(
        `UPDATE webhook_deliveries SET ended_at = ended_at - interval '8 days', changed_at = changed_at - interval '8 days'`,
      );
      await oauth.api.app.get(Sweeper).sweep();
      expect(await deliveries(id)).toMatchObject([{ status: 'pending' }]);
    });

    thorough.it('are created in chunks if too many for one statement, each message once', async () => {
      const { platform } = oauth.api;
      const ids: number[] = [];
      for (let n = 0; n < 12; n++) ids.push(await platform.user());
      const event = await platform.event();
      for (const id of ids) await platform.participant(event, id);
      const clientId = `many-${event}`;
      await query(
        `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ($1, 'Many', 'web', '{https://app.example/}', '{profile:read,events:read}')`,
        [clientId],
      );
      await query(
        `INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
SELECT $1 || id, id, $1, '{"resources":{"x":"profile:read events:read"}}', now() + interval '1 day' FROM unnest($2::bigint[]) id`,
        [clientId, ids],
      );
      await query(
        `INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT sha256(convert_to($1 || id, 'UTF8')), 'RefreshToken', $1 || id, '{}', now() + interval '1 day' FROM unnest($2::bigint[]) id`,
        [clientId, ids],
      );
      // As if a statement could create only three messages within its time limit.
      await query(
        `CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT count(*) FROM new_rows) > 3 THEN RAISE query_canceled; END IF;
  RETURN NULL;
END $$`,
      );
      await query(
        `CREATE TRIGGER refuse_many AFTER INSERT ON webhook_deliveries REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`,
      );
      try {
        await platform.settleChanges(); // a new endpoint gets changes since the oldest open transaction
        const { id } = await endpoint({ clientId }, ['profile.updated', 'events.updated']);
        await query(`UPDATE users SET bio = 'x' WHERE id = ANY ($1)`, [ids]);
        await query(`UPDATE events SET title = 'x' WHERE id = $1`, [event]);
        await receiver.untilReceived(24);
        expect(receiver.told.toSorted()).toEqual(
          ids
            .flatMap((member) => [
              `profile.updated ${member} of ${member}`,
              `events.updated ${event} of ${member}`,
            ])
            .toSorted(),
        );
        expect(await deliveries(id)).toHaveLength(24);
      } finally {
        await query('DROP FUNCTION refuse_many CASCADE');
      }
    });

    thorough.it('continue from the current change if a restored dump has a later position', async () => {
      const { userId, id } = await keyed(['profile.updated']);
      await query(`UPDATE change_places SET changed_in = 9000000000000 WHERE name = 'told'`);
      await eventually(async () => {
        const [place] = await query<{ changed_in: number }>(
          `SELECT changed_in FROM change_places WHERE name = 'told'`,
        );
        return place!.changed_in < 9e12 || undefined;
      });
      await rename(userId, 'x');
      await receiver.untilReceived(1);
      expect(await deliveries(id)).toHaveLength(1);
    });

    thorough.it('do not report changes that ended before the endpoint was created', async () => {
      const userId = await oauth.api.platform.user();
      await rename(userId, 'before');
      await oauth.api.platform.settleChanges();
      const { id } = await endpoint();
      await rename(userId, 'after');
      await receiver.untilReceived(1);
      await settled(id, (found) => found.every(isDelivered));
      expect(await deliveries(id)).toHaveLength(1);
    });
  });
});
