// An hour of all that callers do, while each part is rotated, upgraded, restarted, killed or cut off: finds what grows that should not,
// and requests that fail. Two instances, PostgreSQL with a standby, Redis; it begins with the release before (bench/released.mjs).
//   node bench/soak.mjs --minutes 60 [--rate 60] [--every <seconds between acts>] [--out <folder>]
// writes soak.json, soak.svg and soak.log to the folder, prints the verdict, and exits with 1 if it is bad. Loopback only. SIGINT ends it
// early, with a verdict on the run so far. Times are drawn, and not judged: they are the machine's.
import './own-node.mjs';
import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { hasCommit, installReleased, RELEASED } from './released.mjs';
import { Programme } from './soak/acts.mjs';
import { startMachines } from './soak/machines.mjs';
import { MIX, Traffic } from './soak/traffic.mjs';
import { draw, judge, sample, undelivered } from './soak/verdict.mjs';
import { memoryMegabytes } from './usage.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '60' },
    every: { type: 'string', default: '60' },
    out: { type: 'string', default: '.' },
  },
});
const RATE = Number(options.rate);
const EVERY_MS = Number(options.every) * 1000;
const SAMPLE_MS = 10_000;

if (!hasCommit(RELEASED)) {
  console.error(`This clone does not have the release before, ${RELEASED}: git fetch --unshallow`);
  process.exit(3);
}
await build();
const log = createWriteStream(join(options.out, 'soak.log'));
const machines = await startMachines(installReleased(), log);
const { first, receiver } = machines;
let startedAt = performance.now();
const now = () => performance.now() - startedAt;
const programme = new Programme(machines, now);
const traffic = new Traffic(machines, now, programme);
programme.traffic = traffic;
await traffic.prepare();

startedAt = performance.now();
let until = Number(options.minutes) * 60_000;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (until = 0));
const samples = [];
const take = async () => {
  const one = await sample({ machines, traffic, now, memoryOf: memoryMegabytes });
  if (one) samples.push(one);
};
const total = Object.values(MIX).reduce((sum, share) => sum + share, 0);
const due = Object.fromEntries(Object.keys(MIX).map((kind) => [kind, 0]));
let nextSample = SAMPLE_MS;
let nextAct = Math.min(20_000, EVERY_MS);
for (let at = now(); at < until; at = now()) {
  for (const kind of Object.keys(MIX))
    for (; due[kind] <= at; due[kind] += (1000 * total) / (RATE * MIX[kind])) traffic.begin(kind, due[kind]);
  if (at >= nextSample) {
    nextSample += SAMPLE_MS;
    void take();
  }
  if (at >= nextAct && at < until - EVERY_MS / 2) {
    nextAct += EVERY_MS;
    programme.next();
  }
  await pause(5);
}
const minutes = Math.round(now() / 6_000) / 10;
await programme.end();
while (traffic.underWay > 0) await pause(50);
if (first.child.exitCode !== null || first.child.signalCode !== null)
  traffic.failures.push({ what: 'the first instance', status: 'ended by itself', at: 0, text: '' });
await traffic.checkWrites();

const { counts, failures, refused, lost, late } = traffic;
const judged = Math.max((minutes * 60_000) / 2, programme.firstSince);
const bad = judge(
  samples.filter(({ at }) => at * 60_000 > judged),
  {
    'requests that failed': failures,
    'sign-ins lost': lost.signIns,
    'acknowledged writes lost': lost.writes,
    'revoked, and alive after a second': lost.revocations,
    'webhook messages and logout tokens not delivered': await undelivered(machines),
  },
);
console.log(
  `${counts.requests} requests in ${minutes} min: ${JSON.stringify(counts.statuses)}, ${JSON.stringify(counts.kinds)}; ` +
    `${programme.done.length} acts; ${receiver.received.messages} webhook messages, ${receiver.received.logouts} logout tokens; ` +
    `${refused.length} refused without a fault of the database, and served when they came back: ${JSON.stringify(countBy(refused))}; ` +
    `${late} refreshes that were refused for more than ten seconds; the first instance ran for the last ${(minutes - programme.firstSince / 60_000).toFixed(1)} min`,
);
function countBy(list) {
  const counts = {};
  for (const { during } of list) counts[during || 'no act'] = (counts[during || 'no act'] ?? 0) + 1;
  return counts;
}
writeFileSync(
  join(options.out, 'soak.json'),
  JSON.stringify({
    minutes,
    rate: RATE,
    counts,
    acts: programme.done,
    samples,
    lost,
    late,
    failures,
    refused,
    bad,
  }),
);
writeFileSync(
  join(options.out, 'soak.svg'),
  draw(`${minutes} minutes of mixed load, ${RATE} requests/s, an act each ${options.every} s`, samples),
);
console.log(bad.length === 0 ? 'good' : `BAD: ${bad.join(', ')}`);
await machines.stop();
traffic.close();
process.exitCode = bad.length === 0 ? 0 : 1;
