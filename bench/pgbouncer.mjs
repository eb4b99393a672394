// The cost of PgBouncer in transaction mode: each kind of request to a server on PostgreSQL itself and to one behind PgBouncer, in
// turns, by requests/s and CPU time of server, PgBouncer and PostgreSQL. `node bench/pgbouncer.mjs [--rounds 5] [--seconds 3]`;
// needs Debian's pgbouncer and wrk.
import './own-node.mjs';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { startPgbouncer } from '../bin/pgbouncer.mjs';
import { openDataset } from './data.mjs';
import { measure, requireWrk } from './load.mjs';
import { apiKey, COMPARED, requestsOf } from './questions.mjs';
import { startOurs } from './servers.mjs';
import { cpuMicroseconds } from './usage.mjs';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    users: { type: 'string', default: '10000' },
  },
});
const load = { connections: 32, seconds: Number(flags.seconds) };

requireWrk();
await build();
const dataset = await openDataset(Number(flags.users));
const pooler = await startPgbouncer(dataset.url, { default_pool_size: 20 });
const servers = {
  direct: await startOurs(dataset),
  'through PgBouncer': await startOurs({ ...dataset, url: pooler.url }, { DATABASE_DIRECT_URL: dataset.url }),
};
try {
  console.log('| Question | | Requests/s | Server µs | PgBouncer µs | PostgreSQL µs | All µs |');
  console.log('| --- | --- | ---: | ---: | ---: | ---: | ---: |');
  for (const question of COMPARED) {
    const requests = requestsOf(question, dataset.keys.map(apiKey));
    const turns = Object.fromEntries(Object.keys(servers).map((name) => [name, []]));
    for (const server of Object.values(servers))
      await measure(server, question, requests, { ...load, seconds: 1 });
    for (let round = 0; round < Number(flags.rounds); round++) {
      for (const [name, server] of Object.entries(servers)) {
        const before = cpuMicroseconds(pooler.pid);
        const turn = await measure(server, question, requests, load);
        turns[name].push({ ...turn, poolerCpu: (cpuMicroseconds(pooler.pid) - before) / turn.requests });
      }
    }
    for (const [name, all] of Object.entries(turns)) {
      // Disturbances only add time, so the best of each counts.
      const least = (cost) => Math.min(...all.map(cost));
      const costs = [
        (turn) => turn.serverCpu,
        (turn) => turn.poolerCpu,
        (turn) => turn.databaseCpu,
        (turn) => turn.serverCpu + turn.poolerCpu + turn.databaseCpu,
      ].map((cost) => least(cost).toFixed(0));
      const rate = Math.max(...all.map((turn) => turn.rate)).toFixed(0);
      const failed = all.reduce((sum, turn) => sum + turn.failed, 0);
      console.log(
        `| ${question.name} | ${name} | ${rate} | ${costs.join(' | ')} |${failed > 0 ? ` ${failed} failed` : ''}`,
      );
    }
  }
} finally {
  for (const server of Object.values(servers)) await server.stop();
  await pooler.stop();
  await dataset.stop();
}
