// How long a server, its database and this machine do nothing: each is asked for next to nothing every few milliseconds, in a process of
// its own, and the slowest of the responses are the pauses.
//
// node bench/pauses.mjs SERVER_URL DATABASE_URL SECONDS; writes Pauses as JSON to stdout
import './own-node.mjs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import pg from 'pg';

const EVERY_MS = 5;
/** What takes this long counts as a pause. */
const PAUSE_MS = 10;

/**
 * @typedef {{longest: number, count: number}} Pause the longest in ms, and how many took 10 ms and more
 * @typedef {object} Pauses
 * @property {Pause} server its event loop (a request that needs no place and no database)
 * @property {Pause} database (a statement that reads nothing)
 * @property {Pause} machine a timer of the process that asks: what the two others contain without being at fault
 * @property {{checkpoints: number, autovacuums: number, written: number}} work of PostgreSQL's own meanwhile; `written`: buffers by its
 * checkpointer
 */

/** @returns {Promise<Pauses>} of the next seconds */
export async function watchPauses({ url }, databaseUrl, seconds) {
  const child = spawn(process.execPath, [import.meta.filename, url, databaseUrl, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`the watch for pauses ended with ${code}`);
  return JSON.parse(output);
}

async function watch(url, databaseUrl, seconds) {
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const asks = {
    server: () =>
      new Promise((resolve) => {
        get(`${url}/livez`, { agent }, (response) => response.resume().on('end', resolve)).on(
          'error',
          resolve,
        );
      }),
    database: () => database.query({ name: 'nothing', text: 'SELECT' }),
    machine: () => sleep(0),
  };
  const before = await workOf(database);
  const until = performance.now() + 1000 * seconds;
  const pauses = await Promise.all(
    Object.entries(asks).map(async ([name, ask]) => {
      const pause = { longest: 0, count: 0 };
      await ask(); // connects, prepares
      while (performance.now() < until) {
        const asked = performance.now();
        await ask();
        const took = performance.now() - asked;
        pause.longest = Math.max(pause.longest, took);
        if (took >= PAUSE_MS) pause.count++;
        await sleep(EVERY_MS);
      }
      return [name, pause];
    }),
  );
  agent.destroy();
  const after = await workOf(database);
  await database.end();
  const work = Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - before[name]]));
  return { ...Object.fromEntries(pauses), work };
}

/** PostgreSQL's own counters; its views of checkpoints have other names since version 17. */
async function workOf(database) {
  const { rows } = await database.query(
    `SELECT current_setting('server_version_num')::int >= 170000 AS is_new`,
  );
  const [view, timed, asked] = rows[0].is_new
    ? ['pg_stat_checkpointer', 'num_timed', 'num_requested']
    : ['pg_stat_bgwriter', 'checkpoints_timed', 'checkpoints_req'];
  const written = rows[0].is_new ? 'buffers_written' : 'buffers_checkpoint';
  const counters =
    await database.query(`SELECT (${timed} + ${asked})::int AS checkpoints, ${written}::int AS written,
    (SELECT COALESCE(sum(autovacuum_count + autoanalyze_count), 0)::int FROM pg_stat_user_tables) AS autovacuums FROM ${view}`);
  return counters.rows[0];
}

if (process.argv[1] === import.meta.filename)
  process.stdout.write(
    JSON.stringify(await watch(process.argv[2], process.argv[3], Number(process.argv[4]))),
  );
