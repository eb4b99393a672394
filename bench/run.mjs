#!/usr/bin/env node
// `npm run bench`: compares this server with the peers, alternately, over its own database. See docs/contributors/performance.md.
import './own-node.mjs';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { build } from '../bin/build.mjs';
import { openDataset, rowsReadWhole } from './data.mjs';
import { requireWrk } from './load.mjs';
import { compareServers, measureOthers } from './measurements.mjs';
import { compareOauth, prepareMembers, signIn } from './oauth.mjs';
import { COMPARED } from './questions.mjs';
import { markdownOf } from './report.mjs';
import { faultsOf, measureOverload, overloadQuestions, overloadTable } from './overload.mjs';
import { checkSameness } from './sameness.mjs';
import { PEERS, startAll, startNaiveProvider, startOurs } from './servers.mjs';
import { measureStarts } from './starts.mjs';

/**
 * @typedef {Record<string, import('./measurements.mjs').Result>} Rows by the candidate's name
 * @typedef {object} Results of a run; what was not measured is absent
 * @property {string} date
 * @property {string} machine
 * @property {{rounds: number, seconds: number, connections: number}} plan
 * @property {Record<string, number>} counts rows in the database
 * @property {Record<string, Rows>} [compared] question → servers
 * @property {Record<string, Rows>} [oauth] kind of request → servers
 * @property {Rows} [signIn] of members who sign in for the first time and consent, and of the same in another browser
 * @property {number} [readWhole] rows that a sign-in read by scans of whole tables that had more than a thousand
 * @property {Rows} [others]
 * @property {Record<string, Record<string, Record<string, import('./overload.mjs').Overload>>>} [overload] server → question → load
 * @property {import('./starts.mjs').Starts} [starts]
 */

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    connections: { type: 'string', default: '32' },
    overload: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    only: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (flags.help) {
  console.log(`npm run bench -- [options]

  --users N        members in the database (100000)
  --rounds N       rounds; each measures every server (3)
  --seconds N      length of a turn (5)
  --connections N  of the load generator (32)
  --only TEXT      compare only questions whose name contains TEXT, and measure nothing else
  --overload       only this server, at a quarter of its peak up to five times its peak, and in a flood: no request may fail
                   below the peak; above it, the goal is 85 % of the peak. Exits with 1 if the server collapses
  --short          2,000 members, 1 round of 1 s, the two most important questions and peers, and no result files: for CI.
                   With --overload, one question of each kind, and three of the seven loads

A full run writes bench/results and, with 100,000 users, bench/benchmark.md. Databases are kept in bench/.data for the
next run with the same schema and size.`);
  process.exit(0);
}
const users = Number(flags.users ?? (flags.short ? 2_000 : 100_000));
const plan = {
  rounds: Number(flags.rounds ?? (flags.short ? 1 : 3)),
  seconds: Number(flags.seconds ?? (flags.short ? 1 : 5)),
  connections: Number(flags.connections),
  questions: COMPARED.filter(({ name }, i) => name.includes(flags.only ?? '') && (!flags.short || i < 2)),
};
const whole = !flags.short && flags.only === undefined;
const folder = join(import.meta.dirname, 'results');
const resultsFile = join(folder, `${users}.json`);
mkdirSync(folder, { recursive: true });

/** Started processes, which are always ended, last first. */
const running = [];
const keep = (what) => {
  running.push(what);
  return what;
};

requireWrk();
await build();
try {
  if (flags.overload) await measureOverloads();
  else await measureAll();
} finally {
  for (const one of running.reverse()) await one.stop();
}

async function measureAll() {
  const dataset = keep(await openDataset(users));
  const servers = (await startAll(dataset, flags.short ? PEERS.slice(0, 2) : PEERS)).map(keep);
  const [ours, ...peers] = servers;
  const members = await prepareMembers(dataset);
  const { tokens, ...signIns } = await measureSignIns(dataset, ours, members);
  await checkSameness(servers, dataset, tokens);
  console.error('All servers return the same JSON.');

  const results = {
    date: new Date().toISOString().slice(0, 10),
    machine: `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim()}`,
    plan,
    counts: dataset.counts,
    compared: await compareServers(servers, dataset, tokens, plan),
    ...signIns,
  };
  if (whole) {
    results.overload = {};
    const questions = overloadQuestions(dataset).slice(0, 2);
    for (const server of servers)
      for (const question of questions)
        (results.overload[server.name] ??= {})[question.name] = await measureOverload(
          server,
          question,
          dataset,
          plan.seconds,
        );
  }
  for (const peer of peers) await peer.stop();
  if (flags.only === undefined) {
    const naive = keep(await startNaiveProvider(dataset));
    results.oauth = await compareOauth([ours, naive], members, [dataset], plan);
    await naive.stop();
  }
  if (whole) {
    results.others = await measureOthers(ours, dataset, plan);
    await ours.stop();
    results.starts = await measureStarts(dataset);
  }
  await report(results);
}

/** The first quarter of the sign-ins warms up the server. */
async function measureSignIns(dataset, server, members) {
  const signsIn = flags.short ? members.slice(0, 50) : members;
  const cold = Math.ceil(signsIn.length / 4);
  let [tokens, first] = [[], undefined];
  const read = await rowsReadWhole(dataset, async () => {
    for (const some of [signsIn.slice(0, cold), signsIn.slice(cold)]) {
      first = await signIn(server, some);
      tokens = [...tokens, ...first.tokens];
    }
  });
  const again = await signIn(server, signsIn.slice(cold));
  const signIns = { 'first, with consent': first.turn, again: again.turn };
  return { tokens, signIn: signIns, readWhole: read / signsIn.length };
}

async function report(results) {
  const markdown = await format(markdownOf(results, { judged: !flags.short }), {
    ...(await resolveConfig(folder)),
    parser: 'markdown',
  });
  console.log(markdown);
  if (!whole) return;
  writeFileSync(resultsFile, JSON.stringify(results, null, 2));
  const file = users === 100_000 ? join(folder, '../benchmark') : join(folder, String(users));
  writeFileSync(`${file}.md`, markdown);
}

async function measureOverloads() {
  const dataset = keep(await openDataset(users));
  const server = keep(await startOurs(dataset));
  await prepareMembers(dataset);
  const rows = {};
  const questions = overloadQuestions(dataset).filter(
    ({ name, short }) => name.includes(flags.only ?? '') && (short || !flags.short),
  );
  const faults = [];
  for (const question of questions) {
    const measured = await measureOverload(server, question, dataset, flags.short);
    rows[question.name] = measured;
    faults.push(...faultsOf(question.name, measured));
  }
  console.log(overloadTable(rows));
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}
