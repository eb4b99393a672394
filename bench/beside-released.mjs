#!/usr/bin/env node
// Compares the speed with the previous version: both versions alternate, each on its own database of the same members.
//   node bench/beside-released.mjs [--users 100000] [--rounds 3] [--seconds 5] [--only TEXT]
// The first run needs some minutes to install the previous version and load both databases. docs/contributors/performance.md has the last run's table.
import './own-node.mjs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { measure, requireWrk } from './load.mjs';
import { inTurns } from './measurements.mjs';
import { compareOauth, prepareMembers } from './oauth.mjs';
import { apiKey, ask, COMPARED, OTHERS, requestsOf } from './questions.mjs';
import { installReleased } from './released.mjs';
import { startOurs } from './servers.mjs';
import { cost } from './targets.mjs';

const { values: options } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
  },
});
const users = Number(options.users);
const plan = { rounds: Number(options.rounds), seconds: Number(options.seconds), connections: 32 };
const BEFORE = 'the version before';
/** Measured together, since each step needs the result of the previous step. */
const AUTHORIZATION_SERVER = ['Authorization, signed in', 'Code exchange', 'Refresh'];

requireWrk();
const tree = installReleased();
await build();
const [theirData, theirServers] = await Promise.all(
  ['data.mjs', 'servers.mjs'].map((name) => import(join(tree, 'bench', name))),
);
const running = [];
const keep = (what) => {
  running.push(what);
  return what;
};
try {
  const before = keep(await theirData.openDataset(users));
  const now = keep(await openDataset(users));
  const sides = [
    { dataset: before, server: Object.assign(keep(await theirServers.startOurs(before)), { name: BEFORE }) },
    { dataset: now, server: keep(await startOurs(now)) },
  ];
  for (const question of [...COMPARED, ...OTHERS].filter(({ name }) => name.includes(options.only))) {
    const candidates = [];
    for (const { dataset, server } of sides) {
      const keys = dataset.keys.map(apiKey);
      const first = (await ask(server, keys[0], '/api/public/events')).data[0].id;
      // The first event of one member: only that member may see it.
      const some = typeof question.path === 'function' ? keys.slice(0, 1) : keys;
      const requests = requestsOf(question, some, [first]);
      const turn = async (seconds) => [
        await measure(server, question, requests, { connections: plan.connections, seconds }),
      ];
      candidates.push({ name: server.name, turn });
    }
    const [measured] = await inTurns(candidates, plan);
    print(question.name, measured);
  }
  if (AUTHORIZATION_SERVER.some((name) => name.includes(options.only))) {
    await prepareMembers(before);
    const members = await prepareMembers(now);
    const servers = sides.map(({ server }) => server);
    const measured = await compareOauth(servers, members, [before, now], plan, BEFORE);
    for (const [name, results] of Object.entries(measured)) print(name, results);
  }
} finally {
  for (const one of running.reverse()) await one.stop();
}

/** CPU of server and database per request, in both versions; reports failures, since a version may lack an operation. */
function print(name, results) {
  const [before, now] = Object.values(results);
  const cell = ({ serverCpu, databaseCpu, failed }) =>
    failed > 0 ? `${failed} failed` : `${Math.round(serverCpu)} + ${Math.round(databaseCpu)}`;
  const ratio = before.failed + now.failed > 0 ? '' : (cost(now) / cost(before)).toFixed(2);
  console.log(
    `| ${name} | ${cell(before)} | ${cell(now)} | ${ratio} | ${Math.round(now.memory - before.memory)} |`,
  );
}
