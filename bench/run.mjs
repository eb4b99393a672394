#!/usr/bin/env node
// `npm run bench`: this server beside the peers, in turns, over a database of its own. See docs/performance.md.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { requireWrk } from './load.mjs';
import {
  compareServers,
  measureHalfLoad,
  measureOthers,
  measureSize,
  measureWorkers,
} from './measurements.mjs';
import { measureOauth, prepareMembers, signIn } from './oauth.mjs';
import { ask } from './questions.mjs';
import { Report } from './report.mjs';
import { checkSameness } from './sameness.mjs';
import { startAll, startBareOidc, startOurs } from './servers.mjs';

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    connections: { type: 'string', default: '32' },
    short: { type: 'boolean', default: false },
    only: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
if (flags.help) {
  console.log(`npm run bench -- [options]

  --users N        members in the database (100000); 10000 and 1000000 show whether the cost stays flat
  --rounds N       rounds in which each server has its turn (3)
  --seconds N      length of a turn (5)
  --connections N  of the load generator (32)
  --only TEXT      compare only questions whose name contains TEXT, and measure nothing else
  --short          2,000 members, 1 round of 1 s, only the comparison, nothing written: for CI

The database is kept in bench/.data for the next run with the same schema and size.`);
  process.exit(0);
}
const users = Number(flags.users ?? (flags.short ? 2_000 : 100_000));
const plan = {
  rounds: Number(flags.rounds ?? (flags.short ? 1 : 3)),
  seconds: Number(flags.seconds ?? (flags.short ? 1 : 5)),
  connections: Number(flags.connections),
  only: flags.only ?? '',
};
const whole = !flags.short && flags.only === undefined;

requireWrk();
build();
const dataset = await openDataset(users);
const servers = [];
try {
  const members = await prepareMembers(dataset);
  servers.push(...(await startAll(dataset)));
  await checkSameness(servers, dataset.keys);
  console.error('All servers give the same answers.');

  const report = new Report(dataset.counts, plan);
  const [ours] = servers;
  const signedIn = await signIn(ours, flags.short ? members.slice(0, 50) : members, dataset);
  report.comparison(await compareServers(servers, dataset, signedIn.tokens, plan));
  for (const peer of servers.splice(1)) await peer.stop();
  if (flags.only === undefined) {
    servers.push(await startBareOidc(dataset));
    const oauth = await measureOauth(servers, members, dataset, {
      ...plan,
      count: flags.short ? 200 : 3_000,
    });
    report.oauth(oauth, signedIn.turn);
    await servers.pop().stop();
  }
  if (whole) {
    const firstEvents = [];
    for (const key of dataset.keys) firstEvents.push((await ask(ours, key, '/api/public/events')).data[0].id);
    report.others(await measureOthers(ours, dataset, plan, firstEvents));
    report.halfLoad(await measureHalfLoad(ours, dataset, plan));
    report.size(await measureSize(ours, dataset, plan));
    await servers.pop().stop();
    const { SETTINGS } = await import('../dist/src/config/settings.js');
    if ('WORKERS' in SETTINGS) {
      report.workers(
        await measureWorkers((workers) => startOurs(dataset, { WORKERS: workers }), dataset, plan),
      );
    }
  }
  console.log(report.markdown);
  if (whole) {
    const folder = join(import.meta.dirname, 'results');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${users}.md`), report.markdown);
    writeFileSync(join(folder, `${users}.svg`), report.plot);
  }
} finally {
  for (const server of servers) await server.stop();
  await dataset.stop();
}
