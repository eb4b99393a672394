// The cost of recording and of reading changes: `node bench/changes.mjs`. CPU time of PostgreSQL's process, the best of several
// rounds alternating with and without the triggers, so that a busy machine matters little.
import './own-node.mjs';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../bin/postgres.mjs';
import { setRecording } from './recording.mjs';

const ROUNDS = 5;
const WRITES = 1_000;

const { loadConfig } = await import('../dist/src/config/config.js');
const { createDataSource } = await import('../dist/src/database/postgres/data-source.js');
const { migrate } = await import('../dist/src/database/schema/migrate.js');
const { SyncService } = await import('../dist/src/features/sync/sync.service.js');
const { SignedCursors } = await import('../dist/src/http/paging.js');
const { RESOURCES } = await import('../dist/src/resources/resources.js');

const folder = mkdtempSync(join(tmpdir(), 'pua-bench-'));
const cluster = await startPostgres(folder, { fsync: 'off', autovacuum: 'off' });
try {
  const config = loadConfig({
    NODE_ENV: 'test',
    DATABASE_URL: cluster.url,
    SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  });
  const dataSource = await createDataSource(config, 'maintenance').initialize();
  await migrate(dataSource);
  await dataSource.query(`
INSERT INTO users (id, username) SELECT i, 'member_' || i FROM generate_series(1, 110000) i;
INSERT INTO events (id, title, status, visibility, starts_at, timezone, organizer_id)
  SELECT i, 'Event ' || i, 'scheduled', 'public', now() + i * interval '1 min', 'UTC', 1 + i % 10000 FROM generate_series(1, 20000) i;
INSERT INTO participants (user_id, event_id, role, rsvp_status)
  SELECT u, 1 + (u * 7 + n * 997) % 20000, 'attendee', 'going' FROM generate_series(1, 10000) u, generate_series(1, 20) n;
INSERT INTO connections (id, user_id, peer_id, status, connected_at)
  SELECT id, s.a, s.b, 'accepted', now() FROM (SELECT row_number() OVER () AS id, u, u + 1 + n AS v FROM generate_series(1, 10000) u, generate_series(1, 10) n) c,
    LATERAL (VALUES (u, v), (v, u)) s (a, b);
INSERT INTO connections (id, user_id, peer_id, status, connected_at)
  SELECT 1000000 + v, s.a, s.b, 'accepted', now() FROM generate_series(10100, 109999) v, LATERAL (VALUES (5, v), (v, 5)) s (a, b);
INSERT INTO achievements (id, name, category) SELECT i, 'Achievement ' || i, 'events' FROM generate_series(1, 50) i;
INSERT INTO user_achievements (user_id, achievement_id, progress, earned_at)
  SELECT u, 1 + (u + n) % 50, 1, now() FROM generate_series(1, 10000) u, generate_series(1, 10) n`);
  await dataSource.query('SELECT fold_totals(1000000)');
  await dataSource.query('VACUUM ANALYZE');

  const runner = dataSource.createQueryRunner();
  const [{ pid }] = await runner.query('SELECT pg_backend_pid() AS pid');
  const cpu = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10; // ms, of 100 ticks a second
  };
  const recording = (on) => setRecording((sql) => runner.query(sql), on);
  let n = 0;
  const next = () => (n = (n + 7919) % 9_900) + 1;
  const kinds = {
    'another answer': () =>
      runner.query(
        `UPDATE participants SET rsvp_status = CASE rsvp_status WHEN 'going' THEN 'maybe' ELSE 'going' END
WHERE user_id = $1 AND event_id = $2`,
        [next(), 1 + ((n * 7 + 7 + 997) % 20_000)],
      ),
    'a new answer, and its withdrawal': async () => {
      await runner.query(
        `INSERT INTO participants (user_id, event_id, role, rsvp_status) VALUES ($1, $2, 'attendee', 'going') ON CONFLICT DO NOTHING`,
        [20_000 + next(), 1 + (n % 20_000)],
      );
      await runner.query('DELETE FROM participants WHERE user_id = $1', [20_000 + n + 1]);
    },
    'a new bio': () =>
      runner.query(`UPDATE users SET bio = 'bio ' || $2::int WHERE id = $1`, [
        next(),
        (Math.random() * 1e6) | 0,
      ]),
    'a new name': () =>
      runner.query(`UPDATE users SET first_name = 'name ' || $2::int WHERE id = $1`, [
        next(),
        (Math.random() * 1e6) | 0,
      ]),
    'a new title': () =>
      runner.query(`UPDATE events SET title = 'title ' || $2::int WHERE id = $1`, [
        next(),
        (Math.random() * 1e6) | 0,
      ]),
    'progress of an achievement': () =>
      runner.query(
        'UPDATE user_achievements SET progress = progress + 1 WHERE user_id = $1 AND achievement_id = $2',
        [next(), 1 + ((n + 2) % 50)],
      ),
    'a connection, and its end': async () => {
      await runner.query(
        `INSERT INTO connections (id, user_id, peer_id, status, connected_at)
VALUES ($1, $2, $3, 'accepted', now()), ($1, $3, $2, 'accepted', now())`,
        [5_000_000 + next(), 15_000 + n, 50_000 + n],
      );
      await runner.query('DELETE FROM connections WHERE id = $1', [5_000_000 + n + 1]);
    },
  };
  for (const [name, write] of Object.entries(kinds)) {
    const best = { true: Infinity, false: Infinity };
    for (let round = 0; round < ROUNDS; round++) {
      for (const on of round % 2 ? [true, false] : [false, true]) {
        await recording(on);
        for (let i = 0; i < 50; i++) await write();
        const start = cpu();
        for (let i = 0; i < WRITES; i++) await write();
        best[on] = Math.min(best[on], (cpu() - start) / WRITES);
      }
    }
    const [without, with_] = [best.false * 1000, best.true * 1000];
    console.log(
      `${name}: ${without.toFixed(0)} µs, recorded ${with_.toFixed(0)} µs (+${((100 * with_) / without - 100).toFixed(1)} %)`,
    );
  }
  await recording(true);

  // Readers: a frequent one, one after a long pause, one with 100,000 connections.
  const query = ({ text }, values) => runner.query(text, values);
  const cursors = new SignedCursors(config);
  const sync = new SyncService({ long: query, read: query }, { advance: () => Promise.resolve() }, cursors);
  await runner.query('ANALYZE');
  const scopes = RESOURCES.map((resource) => `${resource}:read`);
  for (const [name, user, back] of [
    ['a member, since a moment ago', 77, 0],
    ['a member, since everything that was measured', 77, 150_000],
    ['a member with 100,000 connections, since a moment ago', 5, 0],
    ['a member with 100,000 connections, since everything that was measured', 5, 150_000],
  ]) {
    const { next } = await sync.changes({ userId: user, scopes }, { limit: 100 });
    const binding = ['sync', user, RESOURCES];
    const [origin, changedIn, ...item] = cursors.read(binding, next, '');
    const cursor = cursors.make(binding, [origin, changedIn - back, ...item]);
    const [calls, wall] = [user === 5 ? 10 : 500, []];
    const start = cpu();
    for (let i = 0; i < calls; i++) {
      const startedAt = performance.now();
      await sync.changes({ userId: user, scopes }, { cursor, limit: 100 });
      wall.push(performance.now() - startedAt);
    }
    wall.sort((a, b) => a - b);
    console.log(
      `${name}: ${((cpu() - start) / calls).toFixed(2)} ms of CPU, p50 ${wall[wall.length >> 1].toFixed(1)} ms`,
    );
  }
  const [{ rows, bytes }] = await runner.query(
    `SELECT (SELECT count(*) FROM changes) AS rows, pg_total_relation_size('changes') AS bytes`,
  );
  console.log(`${rows} rows of changes, ${Math.round(bytes / rows)} bytes each with their indexes`);
  await runner.release();
  await dataSource.destroy();
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true });
}
