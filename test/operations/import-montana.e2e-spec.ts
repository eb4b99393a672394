import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { seedDemo } from '../../src/operations/demo/demo.js';
import type { ImportReport } from '../../src/import/import-records.js';
import { TestApi } from '../support/api.js';
import { pua, puaJson } from '../support/command-line.js';
import { thorough } from '../support/database.js';

const MONTANA = join(process.cwd(), '../shared/data/montana-meetups');
const available = existsSync(MONTANA);
if (!available) console.warn(`SKIPPED: the real data of montana-meetups is not at ${MONTANA}`);

(available ? thorough.describe : describe.skip)(
  'pua import of montana-meetups into a database with the demo',
  () => {
    let api: TestApi;
    beforeAll(async () => {
      api = await TestApi.start();
      await seedDemo(api.dataSource);
    });
    afterAll(() => api.close());

    it('accepts every record, and keeps the demo’s members', async () => {
      const ofDemo = () =>
        api.query<unknown>(
          `SELECT to_jsonb(u) AS user, (SELECT jsonb_agg(to_jsonb(p) ORDER BY achievement_id) FROM user_achievements p WHERE p.user_id = u.id)
FROM users u WHERE id >= 900000001 ORDER BY id`,
        );
      const before = await ofDemo();
      const report = await puaJson<ImportReport>(api.environment, ['import', MONTANA]);
      expect(report.rejected).toBe(0);
      expect(report.files.achievements).toMatchObject({ inserted: 15, updated: 0 });
      expect(before.length).toBeGreaterThan(20);
      expect(await ofDemo()).toEqual(before);
    });
  },
);

(available ? thorough.describe : describe.skip)(
  `pua import of montana-meetups${available ? '' : ` (not at ${MONTANA})`}`,
  () => {
    let api: TestApi;
    let report: ImportReport;
    beforeAll(async () => {
      api = await TestApi.start();
      report = await puaJson<ImportReport>(api.environment, ['import', MONTANA]);
    });
    afterAll(() => api.close());

    const read = <Row>(name: string) =>
      readFileSync(join(MONTANA, `${name}.ndjson`), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Row);

    it('inserts every record', () => {
      expect(report.rejected).toBe(0);
      const inserted = Object.entries(report.files).map(([name, file]) => [name, file.inserted]);
      expect(Object.fromEntries(inserted)).toEqual({
        users: 1759,
        achievements: 15,
        events: 1391,
        participants: 11_043,
        connections: 3378,
        user_achievements: 8913,
      });
    });

    it('changes nothing when repeated', async () => {
      const { files } = await puaJson<ImportReport>(api.environment, ['import', MONTANA]);
      for (const file of Object.values(files))
        expect(file).toMatchObject({ inserted: 0, updated: 0, unchanged: file.read });
    });

    it('leaves totals that the doctor confirms', async () => {
      expect(await pua(api.environment, ['doctor'])).toMatchObject({ code: 0 });
    });

    it('leads to API counts that match the files, for the ten busiest members and each hundredth member', async () => {
      const drafts = new Set(
        read<{ id: number; status: string }>('events')
          .filter(({ status }) => status === 'draft')
          .map(({ id }) => id),
      );
      const participations = read<{ event_id: number; user_id: number; role: string }>('participants');
      const connections = read<{ requester_id: number; addressee_id: number; status: string }>('connections');
      const achievements = read<{ user_id: number; earned_at: string | null }>('user_achievements');
      const users = read<{ id: number; display_name: string; created_at: string }>('users');

      const busy = new Map<number, number>();
      for (const { user_id } of participations) busy.set(user_id, (busy.get(user_id) ?? 0) + 1);
      const busiest = [...busy]
        .sort(([, a], [, b]) => b - a)
        .slice(0, 10)
        .map(([id]) => id);
      const others = users.filter((_, i) => i % 100 === 0).map(({ id }) => id);

      for (const id of new Set([...busiest, ...others])) {
        const events = participations.filter(
          ({ user_id, event_id, role }) =>
            user_id === id && (!drafts.has(event_id) || role === 'organizer' || role === 'co_organizer'),
        ).length;
        const both = connections.filter(
          ({ requester_id, addressee_id }) => requester_id === id || addressee_id === id,
        );
        const accepted = both.filter(({ status }) => status === 'accepted').length;
        const sent = both.filter(
          ({ status, requester_id }) => status === 'pending' && requester_id === id,
        ).length;
        const earned = achievements.filter(({ user_id, earned_at }) => user_id === id && earned_at).length;

        const key = await api.key(id);
        const total = async (path: string) =>
          ((await api.get(path, key)).body as { pagination: { total: number } }).pagination.total;
        const member = users.find((user) => user.id === id)!;
        expect((await api.get('/profile', key)).body).toMatchObject({
          id,
          display_name: member.display_name,
          created_at: member.created_at,
          connections_count: accepted,
          achievements_count: earned,
        });
        expect({
          id,
          events: await total('/events?limit=1'),
          accepted: await total('/connections?limit=1'),
          sent: await total('/connections?limit=1&status=pending_sent'),
          received: await total('/connections?limit=1&status=pending_received'),
          earned: await total('/achievements?limit=1'),
        }).toEqual({ id, events, accepted, sent, received: both.length - accepted - sent, earned });
      }
    });
  },
);
