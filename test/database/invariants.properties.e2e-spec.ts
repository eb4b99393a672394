import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { TestApi } from '../support/api.js';
import { onPostgres, thorough } from '../support/database.js';

const MEMBERS = 11; // with one disabled member, no achievement has a rarity; without a disabled member, each achievement has a rarity
const EVENTS = 4;
const ACHIEVEMENTS = 5;
const TIERS = ['common', 'uncommon', 'rare', 'epic', 'legendary', 'unrated'];

const member = fc.nat({ max: MEMBERS - 1 });
const event = fc.nat({ max: EVENTS - 1 });
const achievement = fc.nat({ max: ACHIEVEMENTS - 1 });
const relation = fc.constantFrom(
  ['organizer', null],
  ['co_organizer', null],
  ['attendee', 'going'],
  ['attendee', 'maybe'],
  ['attendee', 'waitlisted'],
  ['invitee', 'pending'],
  ['invitee', 'declined'],
);
/** Actions of the platform; the indexes refer to the members, events and achievements of one run. */
const change = fc.oneof(
  fc.record({ type: fc.constant('disable' as const), member }),
  fc.record({ type: fc.constant('enable' as const), member }),
  fc.record({ type: fc.constant('take part' as const), member, event, relation }),
  fc.record({ type: fc.constant('leave' as const), member, event }),
  fc.record({
    type: fc.constant('event' as const),
    event,
    status: fc.constantFrom('draft', 'scheduled', 'ongoing', 'completed', 'cancelled'),
    deleted: fc.boolean(),
  }),
  fc.record({ type: fc.constant('ask' as const), member, other: member }),
  fc.record({ type: fc.constant('accept' as const), member, other: member }),
  fc.record({ type: fc.constant('part' as const), member, other: member }),
  fc.record({ type: fc.constant('earn' as const), member, achievement }),
  fc.record({ type: fc.constant('lose' as const), member, achievement }),
  fc.record({ type: fc.constant('retire' as const), achievement, retired: fc.boolean() }),
);
type Change = typeof change extends fc.Arbitrary<infer C> ? C : never;

interface Totals {
  total: number;
  earned: number;
  completion_percentage: number;
}
interface Statistics extends Totals {
  points_earned: number;
  points_total: number;
  last_earned_at: string | null;
  by_category: (Totals & { category: string })[];
  by_rarity: (Totals & { rarity: string })[];
  rarest_earned: { id: number; rarity_percentage: number | null } | null;
}
interface Achievement {
  id: number;
  category: string;
  rarity: string;
  rarity_percentage: number | null;
  points: number;
  earned: boolean;
  earned_at: string | null;
}

thorough.describe('the counts', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  const sql = (text: string, values: unknown[] = []) => api.dataSource.query<unknown>(text, values);

  /** Members, events and achievements of one run; no other members are active. */
  async function makeWorld() {
    await sql('DELETE FROM user_achievements');
    await sql('DELETE FROM achievements');
    await sql('UPDATE users SET disabled_at = now() WHERE disabled_at IS NULL');
    const members: { id: number; key: string }[] = [];
    for (let n = 0; n < MEMBERS; n++) {
      const id = await api.platform.user();
      members.push({ id, key: await api.key(id) });
    }
    const events: number[] = [];
    for (let n = 0; n < EVENTS; n++) {
      events.push(await api.platform.event({ organizer_id: members[0]!.id }));
    }
    const achievements: number[] = [];
    for (let n = 0; n < ACHIEVEMENTS; n++) {
      const fields = { category: ['b', 'a', 'C'][n % 3], points: 2 ** n, is_hidden: n === 1 };
      achievements.push(await api.platform.achievement(fields));
    }
    return { members, events, achievements };
  }
  type World = Awaited<ReturnType<typeof makeWorld>>;

  async function apply({ members, events, achievements }: World, made: Change): Promise<void> {
    const user = 'member' in made ? members[made.member]!.id : 0;
    const peer = 'other' in made ? members[made.other]!.id : 0;
    switch (made.type) {
      case 'disable':
        await sql('UPDATE users SET disabled_at = now() WHERE id = $1 AND disabled_at IS NULL', [user]);
        break;
      case 'enable':
        await sql('UPDATE users SET disabled_at = NULL WHERE id = $1', [user]);
        break;
      case 'take part':
        await sql(
          `INSERT INTO participants (user_id, event_id, role, rsvp_status) VALUES ($1, $2, $3, $4)
           ON CONFLICT (user_id, event_id) DO UPDATE SET role = excluded.role, rsvp_status = excluded.rsvp_status`,
          [user, events[made.event], ...made.relation],
        );
        break;
      case 'leave':
        await sql('DELETE FROM participants WHERE user_id = $1 AND event_id = $2', [
          user,
          events[made.event],
        ]);
        break;
      case 'event':
        await sql(
          'UPDATE events SET status = $2, deleted_at = CASE WHEN $3::boolean THEN now() END WHERE id = $1',
          [events[made.event], made.status, made.deleted],
        );
        break;
      case 'ask':
        if (user === peer) break;
        await sql(
          `WITH c AS (SELECT nextval('connections_id_seq') AS id)
           INSERT INTO connections (id, user_id, peer_id, status)
           SELECT c.id, s.* FROM c, (VALUES ($1::bigint, $2::bigint, 'pending_sent'), ($2, $1, 'pending_received')) s
           ON CONFLICT DO NOTHING`,
          [user, peer],
        );
        break;
      case 'accept':
        await sql(
          `UPDATE connections SET status = 'accepted', connected_at = now()
           WHERE (user_id, peer_id) IN (($1, $2), ($2, $1)) AND status <> 'accepted'`,
          [user, peer],
        );
        break;
      case 'part':
        await sql('DELETE FROM connections WHERE (user_id, peer_id) IN (($1, $2), ($2, $1))', [user, peer]);
        break;
      case 'earn':
        await sql(
          `INSERT INTO user_achievements (user_id, achievement_id, earned_at) VALUES ($1, $2, now())
           ON CONFLICT (user_id, achievement_id) DO UPDATE SET earned_at = excluded.earned_at`,
          [user, achievements[made.achievement]],
        );
        break;
      case 'lose':
        await sql(
          'UPDATE user_achievements SET earned_at = NULL WHERE user_id = $1 AND achievement_id = $2',
          [user, achievements[made.achievement]],
        );
        break;
      case 'retire':
        await sql('UPDATE achievements SET retired_at = CASE WHEN $2::boolean THEN now() END WHERE id = $1', [
          achievements[made.achievement],
          made.retired,
        ]);
    }
  }

  /** A simple model of the changes, and of the data that members can see. */
  class Model {
    readonly disabled = new Set<number>();
    readonly #relations = new Map<string, readonly (string | null)[]>();
    readonly #events = Array.from({ length: EVENTS }, () => ({ status: 'scheduled', deleted: false }));
    readonly #connections = new Map<string, 'pending' | 'accepted'>();
    readonly #earned = new Set<string>();
    readonly #retired = new Set<number>();

    apply(made: Change): void {
      const pair = 'other' in made ? [made.member, made.other].toSorted((a, b) => a - b).join() : '';
      if (made.type === 'disable') this.disabled.add(made.member);
      else if (made.type === 'enable') this.disabled.delete(made.member);
      else if (made.type === 'take part') this.#relations.set(`${made.member},${made.event}`, made.relation);
      else if (made.type === 'leave') this.#relations.delete(`${made.member},${made.event}`);
      else if (made.type === 'event') this.#events[made.event] = made;
      else if (made.type === 'ask') {
        if (made.member !== made.other && !this.#connections.has(pair))
          this.#connections.set(pair, 'pending');
      } else if (made.type === 'accept') {
        if (this.#connections.has(pair)) this.#connections.set(pair, 'accepted');
      } else if (made.type === 'part') this.#connections.delete(pair);
      else if (made.type === 'earn') this.#earned.add(`${made.member},${made.achievement}`);
      else if (made.type === 'lose') this.#earned.delete(`${made.member},${made.achievement}`);
      else if (made.retired) this.#retired.add(made.achievement);
      else this.#retired.delete(made.achievement);
    }

    /** Indexes of the events visible to the member, each with its number of attendees. */
    events(member: number): [event: number, going: number][] {
      return this.#events.flatMap(({ status, deleted }, event) => {
        const role = this.#relations.get(`${member},${event}`)?.[0];
        const visible =
          role && !deleted && (status !== 'draft' || ['organizer', 'co_organizer'].includes(role));
        const going = [...this.#relations].filter(
          ([at, [, answer]]) => at.endsWith(`,${event}`) && answer === 'going',
        );
        return visible ? [[event, going.length] as [number, number]] : [];
      });
    }

    connected(member: number): number[] {
      return [...this.#connections]
        .filter(([, status]) => status === 'accepted')
        .map(([pair]) => pair.split(',').map(Number))
        .filter((pair) => pair.includes(member))
        .map(([one, other]) => (one === member ? other! : one!))
        .filter((other) => !this.disabled.has(other));
    }

    earned(member: number): number[] {
      return Array.from({ length: ACHIEVEMENTS }, (_, n) => n).filter((n) =>
        this.#earned.has(`${member},${n}`),
      );
    }

    visible(member: number): number[] {
      return Array.from({ length: ACHIEVEMENTS }, (_, n) => n).filter(
        (n) => !this.#retired.has(n) || this.#earned.has(`${member},${n}`),
      );
    }

    /** @returns null if too few members are active */
    share(achievement: number): number | null {
      const active = MEMBERS - this.disabled.size;
      const earners = [...this.#earned].filter((at) => at.endsWith(`,${achievement}`));
      const counted = earners.filter((at) => !this.disabled.has(Number(at.split(',')[0])));
      return active < 10 ? null : (100 * counted.length) / active;
    }
  }

  const read = async (path: string, key: string) => {
    const { status, body } = await api.get(path, key);
    expect([path, status]).toEqual([path, 200]);
    return body as unknown;
  };
  interface List<T> {
    data: T[];
    pagination: { total: number };
  }
  const sum = (numbers: number[]) => numbers.reduce((all, one) => all + one, 0);
  const percent = (part: number, whole: number) =>
    whole === 0 ? 0 : Math.round((10_000 * part) / whole) / 100;

  /** Reads all counts, and compares them with each other. */
  async function readConsistently(key: string) {
    const profile = (await read('/profile', key)) as {
      achievements_count: number;
      connections_count: number;
    };
    const events = (await read('/events?limit=100', key)) as List<{ id: number; attendees_count: number }>;
    const connections = (await read('/connections?limit=100', key)) as List<{ user: { id: number } }>;
    const earned = (await read('/achievements?limit=100', key)) as List<Achievement>;
    const all = (await read('/achievements?action=all&limit=100', key)) as List<Achievement>;
    const statistics = (await read('/achievements?action=stats', key)) as Statistics;

    for (const list of [events, connections, earned, all]) {
      expect(list.pagination.total).toBe(list.data.length);
    }
    expect(profile).toMatchObject({
      achievements_count: earned.pagination.total,
      connections_count: connections.pagination.total,
    });
    const totals = { total: all.data.length, earned: earned.data.length };
    expect(statistics).toMatchObject({
      ...totals,
      points_total: sum(all.data.map(({ points }) => points)),
      points_earned: sum(earned.data.map(({ points }) => points)),
    });
    expect(
      all.data
        .filter((one) => one.earned)
        .map(({ id }) => id)
        .toSorted((a, b) => a - b),
    ).toEqual(earned.data.map(({ id }) => id).toSorted((a, b) => a - b));
    for (const part of [statistics.by_category, statistics.by_rarity]) {
      expect({ total: sum(part.map((p) => p.total)), earned: sum(part.map((p) => p.earned)) }).toEqual(
        totals,
      );
      for (const { total, earned: done, completion_percentage } of [statistics, ...part]) {
        expect(completion_percentage).toBe(percent(done, total));
      }
    }
    for (const { category, total } of statistics.by_category) {
      expect(total).toBe(all.data.filter((one) => one.category === category).length);
    }
    expect(statistics.by_category.map(({ category }) => category)).toEqual(['a', 'b', 'C']);
    expect(statistics.by_rarity.map(({ rarity }) => rarity)).toEqual(TIERS);
    for (const { rarity, total } of statistics.by_rarity) {
      expect(total).toBe(all.data.filter((one) => one.rarity === rarity).length);
    }
    const rarest = earned.data.toSorted(
      (a, b) => (a.rarity_percentage ?? 0) - (b.rarity_percentage ?? 0) || a.id - b.id,
    )[0];
    expect(statistics.rarest_earned?.id).toBe(rarest?.id);
    const last = earned.data.map(({ earned_at }) => earned_at!).toSorted((a, b) => (a < b ? 1 : -1))[0];
    expect(statistics.last_earned_at).toBe(last ?? null);
    return { events, connections, earned, all };
  }

  it('in profile, lists and statistics equal the counts of a simple model, after random changes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { minLength: 25, maxLength: 60 }),
        fc.uniqueArray(member, { minLength: 3, maxLength: 3 }),
        async (changes, asked) => {
          const world = await makeWorld();
          const model = new Model();
          for (const made of changes) {
            await apply(world, made);
            model.apply(made);
          }
          await api.platform.fold();
          for (const n of asked.filter((one) => !model.disabled.has(one))) {
            const { events, connections, earned, all } = await readConsistently(world.members[n]!.key);
            expect(
              events.data
                .map(({ id, attendees_count }) => [world.events.indexOf(id), attendees_count])
                .toSorted(([a], [b]) => a! - b!),
            ).toEqual(model.events(n));
            expect(new Set(connections.data.map(({ user }) => user.id))).toEqual(
              new Set(model.connected(n).map((other) => world.members[other]!.id)),
            );
            expect(new Set(earned.data.map(({ id }) => world.achievements.indexOf(id)))).toEqual(
              new Set(model.earned(n)),
            );
            expect(new Set(all.data.map(({ id }) => world.achievements.indexOf(id)))).toEqual(
              new Set(model.visible(n)),
            );
            for (const { id, rarity_percentage } of all.data) {
              const share = model.share(world.achievements.indexOf(id));
              expect(rarity_percentage).toBe(share === null ? null : Math.round(100 * share) / 100);
            }
          }
        },
      ),
      { numRuns: onPostgres ? 12 : 6, endOnFailure: true },
    );
  });
});
