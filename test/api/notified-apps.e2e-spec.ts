import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ALL_SCOPES, type Scope } from '../../src/auth/scopes.js';
import { RESOURCES, type Resource } from '../../src/resources/resources.js';
import type { SyncAnswer } from '../../src/features/sync/sync.dto.js';
import { WEBHOOK_TYPES, WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';
import { Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';

function subsetsOf<T>(items: readonly T[]): T[][] {
  return items.reduce<T[][]>((sets, item) => sets.flatMap((set) => [set, [...set, item]]), [[]]);
}

/** A key of the member, its sync cursor, and its webhook endpoint. */
interface Reader {
  readonly scopes: readonly Scope[];
  readonly key: string;
  readonly endpoint: string;
  next: string;
}

describe('a key with access to some of a member’s data', () => {
  let api: TestApi;
  let receiver: Receiver;
  let readers: Reader[];
  let platformKey: string;
  const things = { member: 0, peer: 0, organizer: 0, event: 0, connection: 0, achievement: 0 };
  type Things = typeof things;

  beforeAll(async () => {
    api = await TestApi.start();
    receiver = await Receiver.start();
    const { platform } = api;
    things.member = await platform.user();
    things.peer = await platform.user();
    things.organizer = await platform.user();
    things.event = await platform.event({ organizer_id: things.organizer });
    await platform.participant(things.event, things.member);
    things.connection = await platform.connection(things.member, things.peer, {
      met_at_event_id: things.event,
    });
    things.achievement = await platform.achievement();
    await platform.progress(things.member, things.achievement, { earned_at: '2024-01-01T10:00:00Z' });
    await platform.settleChanges();
    const webhooks = new WebhooksService(api.dataSource, api.config);
    readers = [];
    for (const scopes of subsetsOf(ALL_SCOPES).filter(({ length }) => length > 0)) {
      const key = await api.key(things.member);
      const keyId = key.split('_')[2]!;
      const { url } = receiver;
      const { id } = await webhooks.create({ url, types: WEBHOOK_TYPES, keyId, actor: 'admin' });
      // An endpoint can request only types that its key's scopes permit. The server checks the scopes again for each message.
      await query('UPDATE api_keys SET scopes = $2 WHERE id = $1', [keyId, scopes]);
      readers.push({ scopes, key, endpoint: id, next: (await sync(key)).next });
    }
    platformKey = await api.platformKey(['platform:read']);
  });
  afterAll(async () => {
    await api.close();
    await receiver.close();
  });

  const query = <T>(sql: string, values: unknown[] = []) => api.query<T>(sql, values);
  const sync = async (key: string, parameters: Record<string, string> = {}): Promise<SyncAnswer> => {
    const { status, body } = await api.get(`/sync?${new URLSearchParams(parameters).toString()}`, key);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body as SyncAnswer;
  };
  const may = (scopes: readonly Scope[]) => (resource: Resource) => scopes.includes(`${resource}:read`);

  /** A change of each kind of record, and the lists of the member in which it is visible. */
  const changes: [record: string, sql: string, shown: Partial<Record<Resource, keyof Things>>][] = [
    [
      'an event',
      `UPDATE events SET title = 'New' WHERE id = :event`,
      { events: 'event', connections: 'connection' },
    ],
    ['a member’s own profile', `UPDATE users SET bio = 'new' WHERE id = :member`, { profile: 'member' }],
    [
      'a member who is visible to others',
      `UPDATE users SET first_name = 'New' WHERE id = :peer`,
      { connections: 'connection' },
    ],
    ['an organizer', `UPDATE users SET first_name = 'New' WHERE id = :organizer`, { events: 'event' }],
    [
      'an RSVP',
      `UPDATE participants SET rsvp_status = 'maybe' WHERE event_id = :event AND user_id = :member`,
      { events: 'event', connections: 'connection' },
    ],
    [
      'a connection',
      `UPDATE connections SET source = 'search' WHERE id = :connection`,
      { connections: 'connection', profile: 'member' },
    ],
    [
      'an achievement',
      'UPDATE achievements SET points = points + 1 WHERE id = :achievement',
      { achievements: 'achievement' },
    ],
    [
      'an earned achievement',
      `UPDATE user_achievements SET earned_at = '2024-01-02' WHERE user_id = :member AND achievement_id = :achievement`,
      { achievements: 'achievement', profile: 'member' },
    ],
  ];

  const sentence = 'is notified of changes to %s by sync and by webhook, as far as its scopes allow';
  const [most, ...others] = changes;
  it.each([most!])(sentence, isTold);
  thorough.it.each(others)(sentence, isTold);

  async function isTold(...[, sql, shown]: (typeof changes)[number]): Promise<void> {
    const whole = readers.find(({ scopes }) => scopes.length === ALL_SCOPES.length)!;
    const starts = new Map<string, string>();
    for (const resources of subsetsOf(RESOURCES).filter(({ length }) => length > 0))
      starts.set(resources.join(), (await sync(whole.key, { resources: resources.join() })).next);
    await query('DELETE FROM webhook_deliveries');

    await query(sql.replaceAll(/:(\w+)/g, (_, name: keyof Things) => String(things[name])));
    await api.platform.settleChanges();

    const expected = (isAsked: (resource: Resource) => boolean) =>
      RESOURCES.filter((resource) => shown[resource] !== undefined && isAsked(resource))
        .map((resource) => `${resource}.updated ${things[shown[resource]!]}`)
        .toSorted();
    const said = ({ data }: SyncAnswer) =>
      data.map(({ resource, kind, id }) => `${resource}.${kind} ${id}`).toSorted();
    for (const reader of readers) {
      const answer = await sync(reader.key, { cursor: reader.next });
      reader.next = answer.next;
      expect([reader.scopes, said(answer)]).toEqual([reader.scopes, expected(may(reader.scopes))]);
    }
    for (const [resources, cursor] of starts) {
      const answer = await sync(whole.key, { resources, cursor });
      const isAsked = (resource: Resource) => resources.split(',').includes(resource);
      expect([resources, said(answer)]).toEqual([resources, expected(isAsked)]);
    }

    const messages = await eventually(async () => {
      const found = await query<{ endpoint_id: string; message: string }>(
        `SELECT endpoint_id, type || ' ' || thing_id AS message FROM webhook_deliveries ORDER BY message`,
      );
      return found.some(({ endpoint_id }) => endpoint_id === whole.endpoint) ? found : undefined;
    });
    for (const { endpoint, scopes } of readers) {
      const told = messages.filter(({ endpoint_id }) => endpoint_id === endpoint);
      expect([scopes, told.map(({ message }) => message)]).toEqual([scopes, expected(may(scopes))]);
    }
  }

  it('cannot download the data export', async () => {
    for (const key of [...readers.map((reader) => reader.key), platformKey]) {
      const { status, text } = await api.send('GET', '/account/data/download', { 'X-API-Key': key });
      expect(status).not.toBe(200);
      expect(text).not.toContain('exported_at');
    }
  });
});
