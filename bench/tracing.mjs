// The cost of finding a request again in PostgreSQL's log or in traces: each kind of request to a server without either, to one
// with SQL_REQUEST_IDS, and, if a folder with deploy/opentelemetry installed is given, to one that traces every request; in turns,
// by CPU time of server and PostgreSQL per request. `node bench/tracing.mjs [--rounds 4] [--seconds 3] [--traces
// /opt/opentelemetry]`; needs PostgreSQL and wrk.
import './own-node.mjs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { measure, requireWrk } from './load.mjs';
import { apiKey, COMPARED, requestsOf } from './questions.mjs';
import { startOurs } from './servers.mjs';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '3' },
    traces: { type: 'string' },
  },
});
const load = { connections: 16, seconds: Number(flags.seconds) };

requireWrk();
await build();
/** Accepts spans and discards them. */
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.end('{}'));
});
await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve));
const settings = {
  neither: {},
  'SQL_REQUEST_IDS=true': { SQL_REQUEST_IDS: 'true' },
  ...(flags.traces === undefined
    ? {}
    : {
        traces: {
          NODE_OPTIONS: `--import=${join(flags.traces, 'register.mjs')}`,
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.address().port}`,
        },
      }),
};
const dataset = await openDataset(10_000);
const servers = {};
try {
  for (const [name, environment] of Object.entries(settings))
    servers[name] = await startOurs(dataset, environment);
  for (const question of COMPARED) {
    const requests = requestsOf(question, dataset.keys.map(apiKey));
    const least = {};
    for (let round = 0; round <= Number(flags.rounds); round++) {
      for (const [name, server] of Object.entries(servers)) {
        const turn = await measure(server, question, requests, round === 0 ? { ...load, seconds: 1 } : load);
        if (round === 0) continue; // now every key is cached
        const before = least[name] ?? { serverCpu: Infinity, databaseCpu: Infinity };
        least[name] = {
          serverCpu: Math.min(before.serverCpu, turn.serverCpu),
          databaseCpu: Math.min(before.databaseCpu, turn.databaseCpu),
        };
      }
    }
    for (const [name, { serverCpu, databaseCpu }] of Object.entries(least))
      console.log(
        `${question.name}, ${name}: server ${serverCpu.toFixed(0)} µs a request, PostgreSQL ${databaseCpu.toFixed(0)}`,
      );
  }
} finally {
  for (const server of Object.values(servers)) await server.stop();
  await dataset.stop();
  collector.close();
  collector.closeAllConnections();
}
