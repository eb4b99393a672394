import { existsSync } from 'node:fs';
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
    let demo: unknown[];
    beforeAll(async () => {
      api = await TestApi.start();
      await seedDemo(api.dataSource);
      demo = await ofDemo();
    });
    afterAll(() => api.close());

    const load = () => puaJson<ImportReport>(api.environment, ['import', MONTANA]);
    const ofDemo = () =>
      api.query(
        `SELECT to_jsonb(u) AS user, (SELECT jsonb_agg(to_jsonb(p) ORDER BY achievement_id) FROM user_achievements p WHERE p.user_id = u.id)
FROM users u WHERE id >= 900000001 ORDER BY id`,
      );

    it('inserts every record, keeps the demo’s members, and changes nothing when repeated', async () => {
      const { rejected, files } = await load();
      expect(rejected).toBe(0);
      const inserted = Object.entries(files).map(([name, file]) => [name, file.inserted]);
      expect(Object.fromEntries(inserted)).toEqual({
        users: 1759,
        achievements: 15,
        events: 1391,
        participants: 11_043,
        connections: 3378,
        user_achievements: 8913,
      });
      for (const file of Object.values((await load()).files))
        expect(file).toMatchObject({ inserted: 0, updated: 0, unchanged: file.read });
      expect(demo.length).toBeGreaterThan(20);
      expect(await ofDemo()).toEqual(demo);
    });

    it('leaves totals that the doctor confirms', async () => {
      expect(await pua(api.environment, ['doctor'])).toMatchObject({ code: 0 });
    });
  },
);
