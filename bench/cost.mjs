#!/usr/bin/env node
// What a million members cost a month: `node bench/cost.mjs [users]` (100,000) writes docs/operators/cost.md from a stated mix of calls, the CPU times in
// docs/contributors/benchmark.md, and what it counts itself: bytes of responses, and rows and bytes on disk. Times are not measured here, so a busy machine
// changes nothing; run it after a full `npm run bench`.
import './own-node.mjs';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { format, resolveConfig } from 'prettier';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { request, runGenerator } from './generator.mjs';
import { Browser, exchange, refresh } from './oauth-client.mjs';
import { prepareMembers } from './oauth.mjs';
import { OURS, startOurs } from './servers.mjs';

const MEMBERS = 1_000_000;
/** Of all members, those who use an app in a month. */
const ACTIVE = 0.3;
/** The busiest hour against the mean, and how much of a processor may be in use in it. */
const PEAK = { times: 4, used: 0.5 };
const MONTH_SECONDS = 30 * 86_400;

/**
 * What an active member's apps do in a month (20 days, an app opened three times a day), and what is written about any member. `figure`: section
 * and row of docs/contributors/benchmark.md.
 */
const MIX = [
  { name: 'GET /profile', times: 60, figure: ['GET /profile', `${OURS}, access token`], path: '/profile' },
  { name: 'GET /events', times: 120, figure: ['GET /events (20)', `${OURS}, access token`], path: '/events' },
  {
    name: 'GET /events, filtered',
    times: 10,
    figure: ['The other calls', 'GET /events?time_filter=past'],
    path: '/events?time_filter=past',
  },
  { name: 'GET /connections', times: 40, figure: ['GET /connections (20)', OURS], path: '/connections' },
  { name: 'GET /achievements', times: 20, figure: ['GET /achievements (20)', OURS], path: '/achievements' },
  {
    name: 'GET /achievements?action=stats',
    times: 20,
    figure: ['GET /achievements?action=stats', OURS],
    path: '/achievements?action=stats',
  },
  { name: 'GET /sync', times: 60, figure: ['The other calls', 'GET /sync'], path: '/sync' },
  { name: 'PUT /profile', times: 2, figure: ['The other calls', 'PUT /profile'], flow: 'edit' },
  { name: 'Refresh', times: 60, figure: ['Refresh', OURS], flow: 'refresh' },
  { name: 'Authorization, signed in', times: 2, figure: ['Authorization, signed in', OURS] },
  {
    name: 'Sign-in by password, with its exchange',
    times: 1,
    figure: ['Sign-in: from the app to its tokens, by password (argon2id)', 'again'],
    flow: 'sign-in',
  },
  {
    name: 'Line of the platform’s feed, about any member',
    times: 10,
    ofAll: true,
    figure: ['Writing', 'feedCpu'],
    flow: 'edit', // is written to the log of changes likewise
  },
  { name: 'Webhook message', times: 20, figure: ['Writing', 'webhookCpu'] },
];
/** How long rows are kept that are not a member's data, in months, by the defaults of docs/operators/settings.md; others for one, or until they expire. */
const KEPT_MONTHS = {
  auth_events: 13.3,
  member_usage: 3,
  oauth_state: 0.01,
  login_throttle: 0.01,
  rate_limit_counts: 0.01,
  change_marks: 0.01,
};
/** Logs, of which the data has those of its own load. */
const LOGS = ['changes', 'platform_changes', 'auth_events'];
/** Members who sign in, refresh and edit, for the rows of it. */
const SAMPLE = 200;

const [, , users = '100000'] = process.argv;
if (!/^[1-9]\d*$/.test(users)) {
  console.error('node bench/cost.mjs [users], a number (100000)');
  process.exit(2);
}
await writeCost(Number(users));

async function writeCost(users) {
  await build();
  const dataset = await openDataset(users);
  const database = new pg.Client(dataset.url);
  await database.connect();
  const server = await startOurs(dataset);
  try {
    const disk = await sizesOf(database);
    const flows = await countFlows(server, dataset, database);
    const bytes = await countBytes(server, dataset);
    const file = join(import.meta.dirname, '../docs/operators/cost.md');
    const markdown = pageOf({
      users,
      disk,
      flows,
      bytes,
      figures: figuresOf(readFileSync(join(file, '../../contributors/benchmark.md'), 'utf8')),
    });
    writeFileSync(file, await format(markdown, { ...(await resolveConfig(file)), parser: 'markdown' }));
  } finally {
    await server.stop();
    await database.end();
    await dataset.stop();
  }
}

/** Tables with rows: their number, and bytes of table, TOAST and indexes. */
async function sizesOf(database) {
  await database.query('ANALYZE');
  const { rows } =
    await database.query(`SELECT relname AS table, reltuples::float8 AS rows, pg_table_size(oid)::float8 AS heap,
      pg_indexes_size(oid)::float8 AS indexes
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND reltuples > 0 ORDER BY pg_total_relation_size(oid) DESC`);
  return rows;
}

/** Rows that a sign-in, a refresh and an edit write, by table; how large a row of it is with its part of the indexes; months until it expires. */
async function countFlows(server, dataset, database) {
  const members = (await prepareMembers(dataset)).slice(0, SAMPLE);
  const tokens = [];
  const steps = {
    'sign-in': async (i) => {
      const code = await new Browser(server).authorize(members[i]);
      tokens[i] = await exchange(server, code);
    },
    refresh: async (i) => void (tokens[i] = await refresh(server, tokens[i].refresh_token)),
    edit: async (i) => {
      const { status } = await fetch(`${server.url}/api/public/profile`, {
        method: 'PUT',
        headers: { 'X-API-Key': dataset.keys[i], 'Content-Type': 'application/json' },
        body: JSON.stringify({ bio: `Number ${i}` }),
      });
      if (status !== 200) throw new Error(`PUT /profile: ${status}`);
    },
  };
  const written = async () => {
    const { rows } = await database.query(
      'SELECT relname AS table, n_tup_ins::float8 AS rows FROM pg_stat_user_tables WHERE n_tup_ins > 0',
    );
    return Object.fromEntries(rows.map(({ table, rows }) => [table, rows]));
  };
  const flows = {};
  for (const [name, step] of Object.entries(steps)) {
    const before = await written();
    for (let i = 0; i < members.length; i++) await step(i);
    await new Promise((resolve) => setTimeout(resolve, 2_500)); // usage is written every second, statistics by sessions that are idle
    const after = await written();
    flows[name] = Object.fromEntries(
      Object.entries(after)
        .map(([table, rows]) => [table, (rows - (before[table] ?? 0)) / members.length])
        .filter(([, rows]) => rows >= 0.05),
    );
  }
  const sizes = Object.fromEntries(
    (await sizesOf(database)).map(({ table, rows, heap, indexes }) => [table, (heap + indexes) / rows]),
  );
  const lifetimes = {};
  for (const table of ['oauth_tokens', 'oauth_grants']) {
    const { rows } = await database.query(
      `SELECT avg(extract(epoch FROM expires_at - created_at))::float8 AS seconds FROM ${table}`,
    );
    lifetimes[table] = rows[0].seconds / MONTH_SECONDS;
  }
  return { flows, sizes, lifetimes };
}

/** Bytes of a request and of its response, with headers, without TLS and TCP. */
async function countBytes(server, { keys }) {
  const bytes = {};
  for (const { name, path } of MIX.filter((call) => call.path)) {
    const requests = keys.map((key) => request(`/api/public${path}`, `X-API-Key: ${key}`));
    const port = Number(new URL(server.url).port);
    const { outcome } = await runGenerator({ port, requests, rate: 200, seconds: 2, connections: 4 });
    bytes[name] = outcome.bytes + requests[0].length;
  }
  return bytes;
}

/** Section → row → column → figure, of a page of tables. A table without heads has its one figure in the column ''. */
function figuresOf(markdown) {
  const sections = {};
  for (const part of markdown.split(/^## /m).slice(1)) {
    const [title, ...lines] = part.split('\n');
    const [head, , ...rows] = lines
      .filter((line) => line.startsWith('|'))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      );
    if (!head) continue;
    sections[title] = Object.fromEntries(
      rows.map(([name, ...cells]) => [
        name,
        Object.fromEntries(cells.map((cell, i) => [head[i + 1], Number(cell.replaceAll(',', ''))])),
      ]),
    );
  }
  return sections;
}

/** µs of CPU of one call: of server and database; undefined if the page has no such figure. */
function cpuOf(figures, [section, row]) {
  const found = figures[section]?.[row];
  return found && (found[''] ?? found['server CPU µs'] + found['database CPU µs']);
}

function pageOf({ users, disk, flows, bytes, figures }) {
  const calls = MIX.map((call) => {
    const times = call.times * MEMBERS * (call.ofAll ? 1 : ACTIVE);
    const cpu = cpuOf(figures, call.figure);
    return {
      ...call,
      cpu,
      seconds: cpu === undefined ? undefined : (times * cpu) / 1e6,
      gigabytes: (times * (bytes[call.name] ?? 0)) / 1e9,
    };
  });
  const missing = calls.filter(({ seconds }) => seconds === undefined).map(({ name }) => name);
  const seconds = sum(calls.map((call) => call.seconds ?? 0));
  const network = sum(calls.map(({ gigabytes }) => gigabytes));
  const cores = seconds / MONTH_SECONDS;

  const ofData = disk
    .filter(({ table }) => !LOGS.includes(table))
    .map(({ table, rows, heap, indexes }) => ({
      table,
      rows: rows / users,
      heap: heap / users,
      indexes: indexes / users,
    }));
  const data = sum(ofData.map(({ heap, indexes }) => heap + indexes));
  const perMonth = {};
  for (const { flow, times, ofAll } of MIX.filter((call) => call.flow))
    for (const [table, rows] of Object.entries(flows.flows[flow]))
      perMonth[table] = (perMonth[table] ?? 0) + (times * rows) / (ofAll ? ACTIVE : 1);
  const kept = Object.entries(perMonth).map(([table, rows]) => {
    const months = KEPT_MONTHS[table] ?? flows.lifetimes[table] ?? 1;
    return { table, rows, months, bytes: rows * months * (flows.sizes[table] ?? 0) };
  });
  const traces = sum(kept.map((row) => row.bytes));
  const gigabytes = (MEMBERS * data + MEMBERS * ACTIVE * traces) / 1e9;

  const n = (value, digits = 0) =>
    value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits });
  return `# What a million members cost a month

<!-- Made by \`node bench/cost.mjs\`. -->

Computed, by \`bench/cost.mjs\`, from the CPU times in [benchmark.md](../contributors/benchmark.md), from counted bytes of responses, rows and tables over ${n(users)}
members, and from a mix that is an assumption: ${n(100 * ACTIVE)} % of the members use an app in a month, on twenty days, three times a day. Change the mix at the top of
that file to what your members do.

| | a month |
| --- | ---: |
| CPU of servers and PostgreSQL | ${n(seconds)} s |
| the same in processors, on average | ${n(cores, 3)} |
| in the busiest hour (${PEAK.times} × the mean) at ${100 * PEAK.used} % use | ${n((cores * PEAK.times) / PEAK.used, 2)} |
| Network, requests and responses | ${n(network)} GB |
| Disk, tables and indexes | ${n(gigabytes, 1)} GB |
| of it, for each member | ${n(data / 1000, 1)} KB of data |
| and for each active one | ${n(traces / 1000, 1)} KB of sign-ins, tokens, changes and audit |

Two servers and a standby are for availability, not for this load. Not in it: the log of \`webhook_deliveries\` (a week), WAL, backups (each about as large as the disk, before compression),
TLS (what ends it), logs.
${missing.length > 0 ? `\nNot yet in benchmark.md, so not in the sums: ${missing.join(', ')}.\n` : ''}
## Calls

| | a month, each ${'active member'} | CPU µs each | CPU s, all | bytes each | GB, all |
| --- | ---: | ---: | ---: | ---: | ---: |
${calls.map((call) => `| ${call.name} | ${call.times}${call.ofAll ? ' (every member)' : ''} | ${call.cpu === undefined ? 'not measured' : n(call.cpu)} | ${call.seconds === undefined ? '' : n(call.seconds)} | ${bytes[call.name] ? n(bytes[call.name]) : ''} | ${call.gigabytes ? n(call.gigabytes, 1) : ''} |`).join('\n')}

## Disk of a member's data

As in the data of the benchmark: the rows say how much a member has.

| Table | rows a member | bytes in the table | in its indexes |
| --- | ---: | ---: | ---: |
${ofData
  .filter(({ heap, indexes }) => heap + indexes >= 1)
  .map(({ table, rows, heap, indexes }) => `| \`${table}\` | ${n(rows, 2)} | ${n(heap)} | ${n(indexes)} |`)
  .join('\n')}

## Disk of what members do

Rows that are inserted for an active member in a month (with the share of those about members who are not), and for how long they are kept.

| Table | rows a month | kept, months | bytes a row, with indexes | bytes |
| --- | ---: | ---: | ---: | ---: |
${kept.map(({ table, rows, months, bytes }) => `| \`${table}\` | ${n(rows, 1)} | ${n(months, 2)} | ${n(flows.sizes[table] ?? 0)} | ${n(bytes)} |`).join('\n')}
`;
}

function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}
