import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { folderSource } from '../../src/import/sources.js';
import { importRecords } from '../../src/import/import-records.js';
import { WEBHOOK_TYPES, WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { TestApi } from '../support/api.js';
import { PROCESS } from '../support/command-line.js';
import { postgres, thorough } from '../support/database.js';
import { writeFolder } from '../support/import-files.js';
import { freePort } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';

const MONTANA = join(process.cwd(), '../shared/data/montana-meetups');
const available = existsSync(MONTANA);
if (!available) console.warn(`SKIPPED: the real data of montana-meetups is not at ${MONTANA}`);

/** Starts the example as a platform would. */
function feedFolder(url: string, key: string, folder: string, batch: number) {
  const child = spawn(process.execPath, ['examples/platform/feed.mjs', folder, '--batch', String(batch)], {
    env: { ...PROCESS, API_KEY: key, API_URL: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code]]) => ({ code: code as number | null, stdout, stderr }),
  );
}

/** All data that the platform sent, without the times of arrival. */
async function brought(dataSource: DataSource): Promise<Record<string, unknown>> {
  const tables = {
    users: 'id',
    achievements: 'id',
    events: 'id',
    participants: 'user_id, event_id',
    connections: 'user_id, peer_id',
    user_achievements: 'user_id, achievement_id',
  };
  const all: Record<string, unknown> = {};
  for (const [table, order] of Object.entries(tables))
    all[table] = await dataSource.query(
      `SELECT count(*) AS rows, md5(string_agg((to_jsonb(t) - '{changed_in,version}'::text[])::text, ',' ORDER BY ${order})) AS content FROM ${table} t`,
    );
  return all;
}

function smallFolder(): string {
  const created_at = '2024-01-01 10:00:00';
  const users = Array.from({ length: 25 }, (_, i) => ({ id: i + 1, username: `member${i + 1}`, created_at }));
  return writeFolder({ users, participants: [{ event_id: 1, user_id: 1, deleted: true }] });
}

describe('examples/platform', () => {
  thorough.it.each([1, 10, 5_000])(
    'feeds a folder in batches of %s lines, and a later import changes nothing',
    async (batch) => {
      await using api = await TestApi.start();
      const folder = smallFolder();
      const { code, stdout, stderr } = await feedFolder(api.url, await api.platformKey(), folder, batch);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/received: 26,\n {2}created: 25,\n[^]*unchanged: 1,/);
      const before = await brought(api.dataSource);
      const { imported, files } = await importRecords(api.dataSource, folderSource(folder));
      expect([imported, files.users]).toMatchObject([true, { inserted: 0, updated: 0, unchanged: 25 }]);
      expect(await brought(api.dataSource)).toEqual(before);
    },
  );

  thorough.it('fails at a bad line, and names the line', async () => {
    await using api = await TestApi.start();
    const folder = writeFolder({ users: [{ id: 1, username: 'a' }, { id: 2 }] });
    const { code, stderr } = await feedFolder(api.url, await api.platformKey(), folder, 10);
    expect(code).toBe(1);
    expect(stderr).toContain('line 2: missing: record.username: is required');
  });

  (available ? postgres.it : it.skip)(
    'feeds montana-meetups completely while the server is killed repeatedly: a later import changes nothing',
    async () => {
      const api = await TestApi.start();
      const port = new URL(api.url).port; // settings of the test's application, which gets no request here
      const environment = { ...api.environment, RATE_LIMIT_PLATFORM: '0', PORT: '0' };
      let server = await ServerProcess.start(environment);
      const own = new URL(server.url).port;
      expect(own).not.toBe(port);
      try {
        let ended = false;
        const feeding = feedFolder(server.url, await api.platformKey(), MONTANA, 500).finally(
          () => (ended = true),
        );
        let kills = 0;
        while (!ended && kills < 4) {
          await Promise.race([feeding, setTimeout(400)]);
          if (ended) break;
          await server.kill('SIGKILL');
          kills++;
          server = await ServerProcess.start({ ...environment, PORT: own });
        }
        const { code, stderr } = await feeding;
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(kills).toBeGreaterThan(0);
        const { files } = await importRecords(api.dataSource, folderSource(MONTANA));
        for (const [name, { inserted, updated, deleted }] of Object.entries(files))
          expect([name, inserted, updated, deleted]).toEqual([name, 0, 0, 0]);
      } finally {
        await server.kill('SIGKILL');
        await api.close();
      }
    },
  );

  (available ? postgres.it : it.skip)(
    'simulates a platform while instances are killed at random: in the end platform, API and apps have the same rows',
    async () => {
      const api = await TestApi.start();
      await importRecords(api.dataSource, folderSource(MONTANA));
      const limits = { RATE_LIMIT_PLATFORM: '0', RATE_LIMIT_READ: '0', RATE_LIMIT_WRITE: '0' };
      const environment = { ...api.environment, ...limits };
      const servers = await Promise.all([0, 1].map(() => ServerProcess.start({ ...environment, PORT: '0' })));
      try {
        const busiest = await api.query<{ id: number }>(
          `SELECT user_id AS id FROM participants GROUP BY user_id HAVING count(*) < 300 ORDER BY count(*) DESC, user_id LIMIT 5`,
        );
        const webhooks = new WebhooksService(api.dataSource, api.config);
        const port = await freePort();
        const keys: string[] = [];
        const secrets: string[] = [];
        for (const { id } of busiest) {
          const key = await api.key(id);
          keys.push(key);
          const { secret } = await webhooks.create({
            url: `http://127.0.0.1:${port}/`,
            types: WEBHOOK_TYPES,
            keyId: key.split('_')[2]!,
            actor: 'admin',
          });
          secrets.push(secret);
        }
        const child = spawn(process.execPath, ['examples/platform/play.mjs', '40'], {
          env: {
            ...PROCESS,
            API_URLS: servers.map(({ url }) => url).join(','),
            API_KEY: await api.platformKey(),
            MEMBER_KEYS: keys.join(','),
            WEBHOOK_SECRETS: secrets.join(','),
            PORT: String(port),
          },
          stdio: ['pipe', 'pipe', 'pipe'],
        });
        const ids = busiest.map(({ id }) => id);
        const answers = await api.query<{ event_id: number; user_id: number }>(
          `SELECT event_id, user_id FROM participants WHERE user_id = ANY ($1) AND role = 'attendee' ORDER BY event_id, user_id LIMIT 60`,
          [ids],
        );
        const lines = answers.map(({ event_id, user_id }, i) => {
          const rsvp = { role: 'attendee', rsvp_status: i % 2 ? 'maybe' : 'waitlisted' };
          const change = i % 3 === 0 ? { op: 'delete' } : { op: 'put', ...rsvp };
          const { op, ...fields } = change;
          return JSON.stringify({ type: 'participants', op, record: { event_id, user_id, ...fields } });
        });
        child.stdin.end(`${lines.join('\n')}\n`);
        let ended = false;
        const played = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).finally(
          () => (ended = true),
        );
        for (let kills = 0; !ended && kills < 4; kills++) {
          await Promise.race([played, setTimeout(1_500)]);
          const victim = kills % 2;
          await servers[victim]!.kill('SIGKILL');
          servers[victim] = await ServerProcess.start({
            ...environment,
            PORT: new URL(servers[victim]!.url).port,
          });
        }
        const [stdout, stderr, [code]] = await played;
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(JSON.parse(stdout)).toMatchObject({
          lines: 60,
          edits: 40,
          apps_agree: true,
          platform_agrees: true,
          delay_ms: { webhook: { count: expect.any(Number) }, sync: { count: 40 } },
        });
        // The database contains exactly the data that the platform fed.
        for (const [i, { event_id, user_id }] of answers.entries()) {
          const rows = await api.query<{ rsvp_status: string }>(
            'SELECT rsvp_status FROM participants WHERE event_id = $1 AND user_id = $2',
            [event_id, user_id],
          );
          expect(rows).toEqual(i % 3 === 0 ? [] : [{ rsvp_status: i % 2 ? 'maybe' : 'waitlisted' }]);
        }
      } finally {
        await Promise.all(servers.map((server) => server.kill('SIGKILL')));
        await api.close();
      }
    },
  );
});
