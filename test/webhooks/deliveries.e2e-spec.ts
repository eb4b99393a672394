import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { WebhookDeliveries } from '../../src/webhooks/webhook-deliveries.js';
import type { Attempt } from '../../src/runtime/outbox.js';
import type { Message } from '../../src/webhooks/webhook-sender.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { hold, postgres } from '../support/database.js';
import { openDatabase, type OpenDatabase } from '../support/open-database.js';
import { Platform } from '../support/platform.js';

const TAKEN: Attempt = { taken: true, status: 204, error: null, seconds: 0.1, gone: false, retryAfter: 0 };
const FAILED: Attempt = { ...TAKEN, taken: false, status: 500 };

describe('claimed webhook messages', () => {
  let database: OpenDatabase;
  let dataSource: DataSource;
  let webhooks: WebhooksService;

  beforeAll(async () => {
    database = await openDatabase('telling');
    ({ dataSource } = database);
    webhooks = new WebhooksService(dataSource, database.config);
  });
  afterAll(() => database.close());

  const endpoint = async () =>
    (await webhooks.create({ url: 'https://app.example/hooks', types: ['profile.updated'], actor: 'admin' }))
      .id;
  /** The same number of messages for each of the members, one member after the other. */
  const wait = (endpointId: string, members: readonly number[], count = 1) =>
    dataSource.query(
      `INSERT INTO webhook_deliveries (endpoint_id, user_id, type, thing_id, changed_at)
SELECT $1, m, 'profile.updated', m, now() FROM unnest($2::bigint[]) WITH ORDINALITY AS members (m, i), generate_series(1, $3)
ORDER BY i`,
      [endpointId, members, count],
    );
  const rowOf = async ({ sequence }: Message) =>
    (
      await dataSource.query<{ status: string; attempts: number; lease: string | null }[]>(
        'SELECT status, attempts, leased_until::text AS lease FROM webhook_deliveries WHERE sequence = $1',
        [sequence],
      )
    )[0]!;
  const claim = async (instance: WebhookDeliveries, most = 256) => (await instance.claim(most)).messages;
  const membersOf = (messages: readonly Message[]) => messages.map(({ user_id: member }) => member);
  const ended = (id: string) => webhooks.disable(id, 'admin');

  it('include a message about another member even if 1,100 messages about the first member wait', async () => {
    const id = await endpoint();
    await wait(id, [1], 1_100);
    await wait(id, [2]);
    const instance = new WebhookDeliveries(dataSource);
    expect(membersOf(await claim(instance))).toEqual([1, 2]);
    expect(await claim(instance)).toEqual([]);
    await ended(id);
  });

  it('include one message about each member before a second message about any member', async () => {
    const id = await endpoint();
    const members = Array.from({ length: 21 }, (_, i) => i); // 0: messages that are not about a member
    await wait(id, members, 3);
    const instance = new WebhookDeliveries(dataSource);
    const turns: number[] = [];
    const underWay: Message[] = [];
    while (turns.length < 63) {
      const claimed = await claim(instance, 5);
      turns.push(...membersOf(claimed));
      underWay.push(...claimed);
      await instance.finish(underWay.shift()!, TAKEN);
    }
    const ofMembers = turns.filter((member) => member > 0);
    for (let round = 0; round < 3; round++)
      expect(ofMembers.slice(round * 20, round * 20 + 20)).toEqual(members.slice(1));
    for (const message of underWay) await instance.finish(message, TAKEN);
    await ended(id);
  });

  it('are first those of the endpoint with fewer messages in progress', async () => {
    const [busy, other] = [await endpoint(), await endpoint()];
    await wait(
      busy,
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
    const instance = new WebhookDeliveries(dataSource);
    const [first] = await claim(instance);
    await wait(other, [1, 2]);
    await instance.finish(first!, TAKEN);
    const next = async () => (await claim(instance, 1)).map(({ endpoint_id: id }) => id);
    expect([await next(), await next(), await next()]).toEqual([[other], [other], [busy]]);
    for (const id of [busy, other]) await ended(id);
  });

  /** A message that instance `other` has claimed after the lease of instance `one` expired. */
  const claimedAgain = async () => {
    const id = await endpoint();
    await wait(id, [1]);
    const [one, other] = [new WebhookDeliveries(dataSource), new WebhookDeliveries(dataSource)];
    const [late] = await claim(one);
    expect(await claim(other)).toEqual([]);
    await dataSource.query('UPDATE webhook_deliveries SET leased_until = now() WHERE endpoint_id = $1', [id]);
    const [current] = await claim(other);
    return { id, one, late: late!, other, current: current! };
  };

  it('cannot be marked as failed or released by an instance whose lease has expired', async () => {
    const { id, one, late, other, current } = await claimedAgain();
    expect(current.sequence).toBe(late.sequence);
    expect(current.lease).not.toBe(late.lease);
    const before = await rowOf(current);
    expect(await one.finish(late, FAILED)).toBeUndefined();
    await one.release(late);
    expect(await rowOf(current)).toEqual(before);
    expect(before).toEqual({ status: 'pending', attempts: 0, lease: current.lease });
    expect(await other.finish(current, FAILED)).toMatchObject({ status: 'pending' });
    expect(await rowOf(current)).toEqual({ status: 'pending', attempts: 1, lease: null });
    await ended(id);
  });

  it('are recorded as delivered once, by the first instance that reports the delivery', async () => {
    const { id, one, late, other, current } = await claimedAgain();
    expect(await one.finish(late, TAKEN)).toMatchObject({ status: 'delivered' });
    expect(await other.finish(current, TAKEN)).toBeUndefined();
    expect(await other.finish(current, FAILED)).toBeUndefined();
    expect(await rowOf(current)).toEqual({ status: 'delivered', attempts: 1, lease: null });
    await ended(id);
  });

  postgres.it('are recorded in batches, and a locked message delays no other message', async () => {
    const id = await endpoint();
    await wait(id, [1, 2, 3, 4]);
    const instance = new WebhookDeliveries(dataSource);
    const messages = await claim(instance);
    const runner = await hold(dataSource, 'SELECT FROM webhook_deliveries WHERE sequence = $1 FOR UPDATE', [
      messages[2]!.sequence,
    ]);
    const finished = messages.map((message) => instance.finish(message, TAKEN));
    const others = await Promise.all(finished.filter((_, i) => i !== 2));
    expect(others.map((outcome) => outcome?.status)).toEqual(['delivered', 'delivered', 'delivered']);
    await runner.rollback();
    expect(await finished[2]).toMatchObject({ status: 'delivered' });
    const [{ commits }] = await dataSource.query<[{ commits: number }]>(
      'SELECT count(DISTINCT xmin::text) AS commits FROM webhook_deliveries WHERE endpoint_id = $1',
      [id],
    );
    expect(commits).toBe(3); // the first record; the two records that arrived meanwhile; and the locked record
    await ended(id);
  });
});

describe('created webhook messages', () => {
  let database: OpenDatabase;
  let dataSource: DataSource;
  let platform: Platform;
  let endpointId: string;
  /** Members who granted an app access, and an event of the first five members. */
  let members: number[];
  let event: number;

  beforeEach(async () => {
    database = await openDatabase('telling');
    ({ dataSource } = database);
    platform = new Platform(dataSource);
    event = await platform.event();
    members = [];
    for (let n = 0; n < 6; n++) members.push(await platform.user());
    for (const member of members.slice(0, 5)) await platform.participant(event, member);
    await dataSource.query(
      `INSERT INTO oauth_clients (id, name, type, redirect_uris, scopes) VALUES ('app', 'App', 'web', '{https://app.example/}', '{profile:read,events:read}')`,
    );
    await dataSource.query(
      `INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
SELECT id, id, 'app', '{"resources":{"x":"profile:read events:read"}}', now() + interval '1 day' FROM unnest($1::bigint[]) id`,
      [members],
    );
    await dataSource.query(
      `INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT sha256(convert_to(id::text, 'UTF8')), 'RefreshToken', id, '{}', now() + interval '1 day' FROM unnest($1::bigint[]) id`,
      [members],
    );
    // A new endpoint gets changes since the oldest open transaction, even of another test. This wait excludes the rows above.
    await platform.settleChanges();
    ({ id: endpointId } = await new WebhooksService(dataSource, database.config).create({
      url: 'https://app.example/hooks',
      types: ['profile.updated', 'events.updated'],
      clientId: 'app',
      actor: 'admin',
    }));
  });
  afterEach(() => database.close());

  const renameEvent = (title: string) =>
    dataSource.query('UPDATE events SET title = $2 WHERE id = $1', [event, title]);
  const rename = (member: number, bio: string) =>
    dataSource.query('UPDATE users SET bio = $2 WHERE id = $1', [members[member], bio]);
  /** Creates one batch of messages about the changes so far, on a new instance. */
  const slice = async () => {
    await platform.settleChanges();
    return new WebhookDeliveries(dataSource, [{ changes: 200, members: 2 }]).fanOut();
  };
  /** Messages by member (from 0), in order. */
  const created = async () =>
    (
      await dataSource.query<{ user_id: number; type: string }[]>(
        'SELECT user_id, type FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY sequence',
        [endpointId],
      )
    ).map(({ user_id: id, type }) => `${members.indexOf(id)} ${type.split('.')[0]}`);

  it('about one member do not wait until all messages about an event with many recipients exist', async () => {
    await renameEvent('one');
    expect(await slice()).toEqual({ made: 2, behind: true });
    await rename(5, 'x');
    expect(await slice()).toEqual({ made: 2, behind: true });
    expect(await created()).toEqual(['0 events', '1 events', '2 events', '5 profile']);
    expect(await slice()).toEqual({ made: 2, behind: false });
    expect(await slice()).toEqual({ made: 0, behind: false });
    expect((await created()).slice(4)).toEqual(['3 events', '4 events']);
  });

  it('about a member are in order, each message once, even over several runs', async () => {
    await renameEvent('one');
    await slice();
    await rename(4, 'x');
    await slice();
    expect((await created()).slice(2)).toEqual(['2 events', '4 events', '4 profile']);
    await renameEvent('two');
    while ((await slice()).behind);
    const all = await created();
    const of = (member: number) =>
      all.filter((text) => text.startsWith(String(member))).map((text) => text.slice(2));
    expect(of(4)).toEqual(['events', 'profile', 'events']);
    for (const member of [0, 1, 2]) expect(of(member)).toEqual(['events', 'events']);
    expect(of(3)).toEqual(['events']); // one message for two changes
  });
});
