import { afterEach, beforeEach, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { eraseMembers } from '../../src/accounts/erasure.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import type { Change, SyncAnswer } from '../../src/features/sync/sync.dto.js';
import { TestApi } from '../support/api.js';
import { atOnce } from '../support/concurrent.js';
import { onPostgres, thorough } from '../support/database.js';
import { event, importFiles, participant, type ImportedFiles } from '../support/import-files.js';
import {
  DEADLOCK,
  EVENTS,
  FOREIGN_KEY_VIOLATION,
  MEMBERS,
  SERIALIZATION_FAILURE,
  UNIQUE_VIOLATION,
  manyThings,
  writeThem,
} from '../support/writers.js';

type Item = Record<string, unknown> & { id: number };

thorough.describe('polling GET /api/public/sync', () => {
  const FOLLOWED = [1, 2];
  const WRITERS = 4;
  const ISOLATION = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;
  const LOST_RACES = [UNIQUE_VIOLATION, FOREIGN_KEY_VIOLATION, SERIALIZATION_FAILURE, DEADLOCK];
  const LISTS: Record<string, string> = {
    events: '/events?limit=100',
    connections: '/connections?limit=100&status=accepted,pending_sent,pending_received',
    achievements: '/achievements?limit=100',
  };
  const keys = new Map<number, string>();
  let api: TestApi;
  let writers: DataSource[];
  // Separate databases: the statements would change members that a test has erased, which the database rejects.
  beforeEach(async () => {
    api = await TestApi.start();
    writers = await atOnce(WRITERS, () => createDataSource(api.config, 'maintenance').initialize());
    await writeThem(api.platform);
    for (const id of FOLLOWED) keys.set(id, await api.key(id));
  });
  afterEach(async () => {
    await Promise.all(writers.map((writer) => writer.destroy()));
    await api.close();
  });

  const anyone = fc.oneof(fc.constantFrom(...FOLLOWED), fc.integer({ min: 1, max: MEMBERS }));
  const anyEvent = fc.integer({ min: 1, max: EVENTS });
  const word = fc.constantFrom('one', 'two', 'three');
  /** Statements on visible data that the shared statements do not change. */
  const statement = fc
    .oneof(
      { weight: 3, arbitrary: manyThings },
      fc
        .tuple(anyEvent, word)
        .map(([id, w]) => `UPDATE events SET title = '${w}', summary = '${w}' WHERE id = ${id}`),
      fc.tuple(anyEvent, anyone).map(([id, m]) => `UPDATE events SET organizer_id = ${m} WHERE id = ${id}`),
      fc
        .tuple(anyone, word)
        .map(([id, w]) => `UPDATE users SET profile_picture = 'https://x.example/${w}' WHERE id = ${id}`),
      fc.tuple(anyone, word).map(([id, w]) => `UPDATE users SET bio = '${w}' WHERE id = ${id}`),
      fc.tuple(anyone, anyEvent).map(
        ([m, e]) => `INSERT INTO participants (user_id, event_id, role) VALUES (${m}, ${e}, 'co_organizer')
ON CONFLICT (user_id, event_id) DO UPDATE SET role = 'co_organizer', rsvp_status = NULL`,
      ),
      fc
        .tuple(anyone, anyEvent)
        .map(([m, e]) => `UPDATE connections SET met_at_event_id = ${e} WHERE user_id = ${m}`),
      fc.tuple(anyone, fc.integer({ min: 1, max: 3 })).map(
        ([m, a]) => `UPDATE user_achievements SET pin_position = CASE WHEN pin_position IS NULL THEN ${a} END
WHERE user_id = ${m} AND achievement_id = ${a} AND earned_at IS NOT NULL`,
      ),
      fc
        .tuple(fc.integer({ min: 1, max: 3 }), word)
        .map(([a, w]) => `UPDATE achievements SET name = '${w}' WHERE id = ${a}`),
      fc.constant('SELECT coalesce_changes(3)'),
    )
    .filter(
      (text) =>
        !FOLLOWED.some((id) => new RegExp(`disabled_at = (now|CASE).* WHERE id = ${id}\\b`).test(text)),
    );

  /** An item without the counts that depend on other members. */
  const shown = (item: Item) => {
    const { attendees_count: _a, spots_left: _s, rarity: _r, rarity_percentage: _p, ...others } = item;
    const { earned_by_count: _e, eligible_users_count: _u, rarity_computed_at: _c, ...rest } = others;
    return JSON.stringify(rest);
  };
  const read = async (id: number, resource: string) => {
    const key = keys.get(id)!;
    if (resource === 'profile') {
      const parts = [await api.get('/me', key), await api.get('/profile', key)];
      return new Map([[id, JSON.stringify(parts.map(({ body }) => body as object))]]);
    }
    const { body } = (await api.get(LISTS[resource]!, key)) as { body: { data: Item[] } };
    const items = new Map(body.data.map((item) => [item.id, shown(item)]));
    if (resource !== 'events') return items;
    for (const event of body.data.map((item) => item.id)) {
      const detail = await api.get(`/events/${event}`, key);
      // The event may have been hidden after the list was read.
      if (detail.status === 200) items.set(event, shown(detail.body as Item));
      else items.delete(event);
    }
    return items;
  };

  const sync = async (id: number, query = '') => {
    const response = await api.get(`/sync${query}`, keys.get(id)!);
    expect([response.status, response.text]).toEqual([200, response.text]);
    return response.body as SyncAnswer;
  };

  class App {
    readonly copy = new Map<string, Map<number, string>>();
    changes = 0;
    #next = '';
    constructor(readonly id: number) {}

    async readAll() {
      this.#next = (await sync(this.id)).next;
      for (const resource of ['profile', ...Object.keys(LISTS)])
        this.copy.set(resource, await read(this.id, resource));
    }

    /** Applies the reported changes only. */
    async walk() {
      for (let more = true; more;) {
        const answer = await sync(this.id, `?limit=3&cursor=${this.#next}`);
        const fresh = new Map<string, Map<number, string>>();
        for (const { resource, id, kind } of answer.data) {
          this.changes++;
          const copy = this.copy.get(resource)!;
          if (kind === 'updated' && !fresh.has(resource)) fresh.set(resource, await read(this.id, resource));
          const item = kind === 'updated' ? fresh.get(resource)!.get(id) : undefined;
          if (item === undefined) copy.delete(id);
          else copy.set(id, item);
        }
        ({ more, next: this.#next } = answer);
      }
    }
  }

  it('keeps an app’s copy equal to a full read after random changes by four writers, at three isolation levels', async () => {
    const apps = FOLLOWED.map((id) => new App(id));
    await fc.assert(
      fc.asyncProperty(fc.array(statement, { minLength: 60, maxLength: 120 }), async (statements) => {
        await Promise.all(apps.map((app) => app.readAll()));
        let writing = true;
        await Promise.all([
          Promise.all(
            writers.map(async (writer, i) => {
              for (const [n, text] of statements.entries()) {
                if (n % WRITERS !== i) continue;
                await writer
                  .transaction(ISOLATION[n % ISOLATION.length]!, (manager) => manager.query(text))
                  .catch((error: { code: string }) => {
                    if (!LOST_RACES.includes(error.code)) throw error;
                  });
              }
            }),
          ).finally(() => (writing = false)),
          (async () => {
            while (writing) await Promise.all(apps.map((app) => app.walk()));
          })(),
        ]);
        await api.platform.settleChanges();
        for (const app of apps) {
          await app.walk();
          for (const [resource, copy] of app.copy)
            expect([app.id, resource, Object.fromEntries(copy)]).toEqual([
              app.id,
              resource,
              Object.fromEntries(await read(app.id, resource)),
            ]);
        }
      }),
      { numRuns: onPostgres ? 12 : 4, endOnFailure: true },
    );
    for (const app of apps) expect(app.changes).toBeGreaterThan(5);
  });

  /** Keeps a copy of the records by include=data; some responses get lost, and are requested again. */
  class Partner {
    readonly copy = new Map<string, string>();
    changes = 0;
    #next = '';
    constructor(readonly id: number) {}

    async readAll() {
      this.#next = (await sync(this.id)).next;
      this.copy.clear();
      for (const [name, record] of await this.read()) this.copy.set(name, record);
    }

    async read() {
      const key = keys.get(this.id)!;
      const found = new Map<string, string>();
      const text = async (path: string) => (await api.get(path, key)).body as Item;
      found.set(`profile ${this.id}`, shown(await text('/profile')));
      for (const [resource, path] of Object.entries(LISTS)) {
        const { body } = (await api.get(path, key)) as { body: { data: Item[] } };
        for (const item of body.data) {
          const whole = resource === 'connections' ? item : await text(`/${resource}/${item.id}`);
          found.set(`${resource} ${item.id}`, shown(whole));
        }
      }
      return found;
    }

    async walk(lost: () => boolean) {
      let [calls, changes] = [0, 0];
      for (let more = true; more;) {
        const answer = await sync(this.id, `?include=data&limit=100&cursor=${this.#next}`);
        if (lost()) continue;
        calls++;
        for (const change of answer.data as (Change & { data: Item | null })[]) {
          const name = `${change.resource} ${change.id}`;
          expect([name, change.data === null]).toEqual([name, change.kind === 'removed']);
          if (change.data) this.copy.set(name, shown(change.data));
          else this.copy.delete(name);
        }
        changes += answer.data.length;
        ({ more, next: this.#next } = answer);
      }
      expect(calls).toBeLessThanOrEqual(2 * Math.max(1, Math.ceil(changes / 100)));
      this.changes += changes;
    }
  }

  it('keeps a partner’s copy by include=data equal to the routes’ data, even if some responses are lost', async () => {
    const partners = FOLLOWED.map((id) => new Partner(id));
    await fc.assert(
      fc.asyncProperty(
        fc.array(statement, { minLength: 60, maxLength: 120 }),
        fc.infiniteStream(fc.nat(3)),
        async (statements, chances) => {
          const lost = () => chances.next().value === 0;
          await Promise.all(partners.map((partner) => partner.readAll()));
          let writing = true;
          await Promise.all([
            Promise.all(
              writers.map(async (writer, i) => {
                for (const [n, text] of statements.entries())
                  if (n % WRITERS === i)
                    await writer.query(text).catch((error: { code: string }) => {
                      if (!LOST_RACES.includes(error.code)) throw error;
                    });
              }),
            ).finally(() => (writing = false)),
            (async () => {
              while (writing) await Promise.all(partners.map((partner) => partner.walk(lost)));
            })(),
          ]);
          await api.platform.settle();
          await api.platform.settleChanges();
          for (const partner of partners) {
            await partner.walk(lost);
            expect(Object.fromEntries(partner.copy)).toEqual(Object.fromEntries(await partner.read()));
          }
        },
      ),
      { numRuns: onPostgres ? 12 : 4, endOnFailure: true },
    );
    for (const partner of partners) expect(partner.changes).toBeGreaterThan(5);
  });

  it('keeps an app’s copy equal to a full read after imports and erasures', async () => {
    const apps = FOLLOWED.map((id) => new App(id));
    await Promise.all(apps.map((app) => app.readAll()));
    const load = (files: ImportedFiles) => importFiles(api.dataSource, files);
    const imported = (id: number, more: object = {}) =>
      event(id, { status: 'scheduled', organizer_id: 3, updated_at: '2024-04-01 10:00:00', ...more });
    await load({
      events: [1, 900_001, 900_002].map((id) => imported(id)),
      participants: FOLLOWED.flatMap((user_id) =>
        [900_001, 900_002].map((event_id) => participant(event_id, user_id)),
      ),
    });
    await api.platform.settleChanges();
    for (const app of apps) await app.walk();
    await load({
      events: [imported(900_001, { title: 'Imported again', status: 'draft' })],
      participants: [{ user_id: 1, event_id: 900_002, deleted: true }],
    });
    await api.platform.connection(1, await api.platform.user({ id: 700 }));
    for (const id of [3, 4, 700]) await eraseMembers(api.dataSource, [id], { actor: 'admin' });
    await api.platform.settleChanges();
    for (const app of apps) {
      await app.walk();
      expect(app.changes).toBeGreaterThan(2);
      for (const [resource, copy] of app.copy)
        expect([app.id, resource, Object.fromEntries(copy)]).toEqual([
          app.id,
          resource,
          Object.fromEntries(await read(app.id, resource)),
        ]);
    }
  });
});
