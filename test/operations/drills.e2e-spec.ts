import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { startPostgres } from '../../bin/postgres.mjs';
import { puaJson } from '../support/command-line.js';
import { onPostgres, postgres } from '../support/database.js';
import { commandsOf as commandsOfPage, query, runCommands as run, statusOf } from '../support/drills.js';
import { profileAt, ServerProcess } from '../support/server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { eventually, soon, until } from '../support/timing.js';

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

const commandsOf = (page: string, heading: string) => commandsOfPage(`docs/operators/${page}.md`, heading);

/** Whether this host can mount a small disk in memory: requires root, and fails in some containers. */
const mountsDisks = (() => {
  if (!onPostgres) return false;
  const at = mkdtempSync(join(tmpdir(), 'pua-mount-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', at]).status === 0;
  if (mounted) spawnSync('umount', [at]);
  rmSync(at, { recursive: true });
  return mounted;
})();
if (onPostgres && !mountsDisks)
  process.stderr.write('Not run: the drill of the full disk. This machine lets nobody mount one.\n');

postgres.describe('servers', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pua-drills-'));
    chmodSync(folder, 0o755); // PostgreSQL runs as another user
  });
  const clusters: Cluster[] = [];
  const cluster = async (name: string, settings: Record<string, string> = {}) => {
    mkdirSync(join(folder, name), { recursive: true });
    const started = await startPostgres(join(folder, name), { full_page_writes: 'off', ...settings });
    clusters.push(started);
    return started;
  };
  const settingsOf = ({ url }: Cluster) => ({
    NODE_ENV: 'test',
    SECRET_KEY: process.env.TEST_SECRET_KEY!,
    DATABASE_URL: url,
    LOG_LEVEL: 'silent',
  });
  afterAll(async () => {
    await Promise.all(clusters.map((each) => each.stop()));
    rmSync(folder, { recursive: true, force: true });
  });

  (mountsDisks ? it : it.skip)(
    'with a full database disk reject writes, serve reads, lose no acknowledged write, and recover when there is room',
    async () => {
      const DISK = join(folder, 'disk');
      mkdirSync(DISK);
      await run(`mount -t tmpfs -o size=96m,mode=777 tmpfs "${DISK}"`, {});
      try {
        const running = await cluster('full');
        await run(`install -d -o postgres -m 700 "${DISK}/tables"`, {});
        await query(running.url, `CREATE TABLESPACE small LOCATION '${DISK}/tables'`);
        await query(running.url, 'CREATE DATABASE pua TABLESPACE small');
        const environment = {
          ...settingsOf(running),
          DATABASE_URL: running.url.replace(/[^/]*$/, 'pua'),
          DISK,
          ROOM: '24M',
        };
        const [hold, free] = commandsOf('monitoring', 'The disk is full') as [string, string];
        await run(hold, environment);
        await puaJson(environment, ['db', 'migrate']);
        await puaJson(environment, ['users', 'create', '--username', 'reader']);
        const keyOf = (...whose: string[]) =>
          puaJson<{ key: string }>(environment, ['keys', 'create', '--name', 'drill', ...whose]);
        const { key: reading } = await keyOf('--user', 'reader', '--scopes', 'profile:read,profile:write');
        const { key: feeding } = await keyOf('--platform', '--scopes', 'platform:write');
        const limits = { RATE_LIMIT_READ: '0', RATE_LIMIT_WRITE: '0', RATE_LIMIT_PLATFORM: '0' };
        const server = await ServerProcess.start({ ...environment, ...limits });
        try {
          const seen = new Set<number>();
          let refusedFeeds = 0;
          const LINES = 400;
          let last = 0;
          const acknowledged: number[] = [];
          /** Adds members, who take up disk space. */
          const feed = async () => {
            const from = last;
            last += LINES;
            const lines = Array.from({ length: LINES }, (_, i) => {
              const id = 1_000_000 + from + i;
              return JSON.stringify({
                type: 'users',
                record: { id, username: `m${id}`, bio: 'long '.repeat(90) },
              });
            });
            const { status, headers } = await fetch(`${server.url}/api/platform/records`, {
              method: 'POST',
              headers: { 'X-API-Key': feeding, 'Content-Type': 'application/x-ndjson' },
              body: lines.join('\n'),
            });
            seen.add(status);
            if (status === 200) acknowledged.push(from);
            if (status === 503) {
              refusedFeeds++;
              expect(headers.get('retry-after')).toMatch(/^\d+$/);
            }
            return status;
          };
          let puts = 0;
          const put = async () => {
            seen.add((await profileAt(server.url, reading, `at ${++puts}`)).status);
          };
          await until(async () => (await feed()) === 200, 'there is room');
          // Files of other programs fill the rest of the disk.
          await run(`dd if=/dev/zero of="$DISK/others" bs=64k 2>"$DISK.log" || grep -q 'No space left' "$DISK.log"`, environment); // prettier-ignore
          await until(async () => (await feed()) === 503, 'the disk is full');
          for (let round = 0; round < 3; round++) {
            await feed();
            await put();
            expect(await statusOf(server, reading)).toBe(200);
          }
          expect(refusedFeeds).toBeGreaterThanOrEqual(2);

          await run(free, environment);
          await until(async () => (await feed()) === 200, 'writes are good again');
          await put();
          expect(seen).toEqual(new Set([200, 503]));
          const [{ lost }] = (await query<{ lost: number }>(
            environment.DATABASE_URL,
            `SELECT count(*)::int AS lost FROM unnest($1::bigint[]) AS feed (first), generate_series(first, first + ${LINES - 1}) AS n
  WHERE NOT EXISTS (SELECT FROM users WHERE id = 1000000 + n)`,
            [acknowledged],
          )) as [{ lost: number }];
          expect(lost).toBe(0);
        } finally {
          await server.kill();
          await running.stop();
          clusters.splice(clusters.indexOf(running), 1);
        }
      } finally {
        await run(`umount "${DISK}"`, {});
      }
    },
  );

  (mountsDisks ? it : it.skip)(
    'with a full pg_wal disk respond only 503 while PostgreSQL is down, and recover when PostgreSQL restarts with room',
    async () => {
      const DISK = join(folder, 'log-disk');
      mkdirSync(DISK);
      await run(`mount -t tmpfs -o size=160m,mode=777 tmpfs "${DISK}"`, {});
      const others = join(DISK, 'others');
      let running = await cluster('log');
      const database = await TcpProxy.start(running.url);
      try {
        await running.stop();
        await run('mv "$DATA/pg_wal" "$DISK/pg_wal" && ln -s "$DISK/pg_wal" "$DATA/pg_wal"', {
          DATA: join(folder, 'log/data'),
          DISK,
        });
        const start = async () => {
          running = await cluster('log', { min_wal_size: '32MB', max_wal_size: '48MB' });
          database.leadTo(running.url);
        };
        /** Stops at once (pg_ctl stop -m immediate), since a checkpoint would have no room. */
        const end = () => running.stop('SIGQUIT');
        await start();
        const environment = { ...settingsOf(running), DATABASE_URL: database.url };
        await puaJson(environment, ['db', 'migrate']);
        await puaJson(environment, ['users', 'create', '--username', 'writer']);
        const { key } = await puaJson<{ key: string }>(environment, ['keys', 'create', '--user', 'writer', '--name', 'drill', '--scopes', 'profile:read,profile:write']); // prettier-ignore
        const limits = { RATE_LIMIT_READ: '0', RATE_LIMIT_WRITE: '0' };
        const server = await ServerProcess.start({ ...environment, ...limits });
        try {
          const seen = new Set<number>();
          /** @returns the response, and the member's profile afterwards */
          const ask = async (bio?: string) => {
            const answer = await profileAt(server.url, key, bio);
            const profile = (await answer.json()) as { bio?: string };
            seen.add(answer.status);
            if (answer.status === 503) expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
            return { status: answer.status, bio: profile.bio };
          };
          /** Each write contains its number. */
          let attempts = 0;
          let acknowledged = 0;
          const write = async () => {
            const attempt = ++attempts;
            const { status } = await ask(String(attempt));
            if (status === 200) acknowledged = attempt;
            return status;
          };
          await until(async () => (await write()) === 200, 'there is room');
          // An unused replication slot retains the WAL, and other files fill the rest of its disk.
          await query(running.url, "SELECT pg_create_physical_replication_slot('forgotten', true)");
          await run(`dd if=/dev/zero of="${others}" bs=64k 2>"${DISK}.log" || grep -q 'No space left' "${DISK}.log"`, {}); // prettier-ignore
          const session = new pg.Client({ connectionString: running.url });
          session.on('error', () => undefined); // PostgreSQL closes this connection
          await session.connect();
          let isDown = false;
          session.once('end', () => (isDown = true));
          await until(async () => {
            await write();
            // Starts a new WAL segment, which takes more disk space than the write.
            await query(running.url, 'SELECT pg_switch_wal()').catch(() => undefined);
            return isDown;
          }, 'the disk is full, and PostgreSQL down');
          for (let round = 0; round < 20; round++) {
            await write();
            await ask();
          }

          await run(`rm "${others}"`, {});
          await end();
          await start();
          // Each connection that PostgreSQL closed may fail one more request.
          const bio = () =>
            eventually(async () => {
              const read = await ask();
              return read.status === 200 ? read.bio : undefined;
            });
          expect(Number(await bio())).toBeGreaterThanOrEqual(acknowledged); // a rejected write may have been stored
          await until(async () => (await write()) === 200, 'writes are good, too');
          expect(await bio()).toBe(String(attempts));
          expect(seen).toEqual(new Set([200, 503]));
        } finally {
          await server.kill();
          await end();
        }
      } finally {
        await database.close();
        await run(`umount "${DISK}"`, {});
      }
    },
  );

  describe('with the documented commands', () => {
    let environment: ReturnType<typeof settingsOf>;
    let database: Cluster;
    let server: ServerProcess;
    beforeAll(async () => {
      database = await cluster('running');
      environment = settingsOf(database);
      await puaJson(environment, ['db', 'migrate']);
      server = await ServerProcess.start({ ...environment, RATE_LIMIT_READ: '0' });
    });
    afterAll(() => server.kill());

    const member = async (username: string) => {
      await puaJson(environment, ['users', 'create', '--username', username]);
      return puaJson<{ id: string; key: string }>(
        environment,
        `keys create --user ${username} --name drill --scopes profile:read`,
      );
    };
    const refusedSoon = (key: string) => soon(async () => (await statusOf(server, key)) === 401);

    it('revoke a leaked key, and print its audit events', async () => {
      const { id, key } = await member('leaky');
      expect(await statusOf(server, key)).toBe(200);
      const printed = await run(commandsOf('admin', 'A key has leaked').join('\n'), {
        ...environment,
        KEY_ID: id,
      });
      await refusedSoon(key);
      expect(printed).toMatch(/key\.revoked[^]*key\.created/);
    });

    it('end 100,000 grants of a blocked app while the server responds to other callers', async () => {
      const { key } = await member('bystander');
      const { client_id: CLIENT_ID } = await puaJson<{ client_id: string }>(
        environment,
        'clients create --name Bad --type web --redirect-uri https://bad.example/callback',
      );
      await query(
        database.url,
        `WITH made AS (INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT 'bad' || n, (SELECT min(id) FROM users), $1, '{}', now() + interval '30 days' FROM generate_series(1, 100000) n RETURNING id)
INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
SELECT sha256(id::bytea), 'RefreshToken', id, '{}', now() + interval '30 days' FROM made`,
        [CLIENT_ID],
      );
      let ended = false;
      let answered = 0;
      const bystander = async () => {
        while (!ended) {
          expect(await statusOf(server, key)).toBe(200);
          answered++;
        }
      };
      const reading = [bystander(), bystander()];
      await run(commandsOf('admin', 'Block an app').join('\n'), { ...environment, CLIENT_ID });
      ended = true;
      await Promise.all(reading);
      expect(answered).toBeGreaterThan(50);
      const [left] = await query<{ grants: number; tokens: number }>(
        database.url,
        'SELECT (SELECT count(*)::int FROM oauth_grants) AS grants, (SELECT count(*)::int FROM oauth_tokens) AS tokens',
      );
      expect(left).toEqual({ grants: 0, tokens: 0 });
    });

    it('remove a leaked signing key from the published keys', async () => {
      const published = async () => {
        const { keys } = (await (await fetch(`${server.url}/oauth/jwks`)).json()) as {
          keys: { kid: string }[];
        };
        return keys.map(({ kid }) => kid);
      };
      const before = await published();
      await run(commandsOf('operations', 'A signing key has leaked').join('\n'), environment);
      const current = before[0]!;
      await soon(async () => !(await published()).includes(current));
      expect(await published()).toHaveLength(3);
    });
  });
});
