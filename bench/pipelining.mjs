#!/usr/bin/env node
// Attacks without a credential, by clients that send requests without waiting for responses: `node bench/pipelining.mjs`. For each:
// the longest delay of the server's event loop (Node's own measure, every 10 ms), the slowest response of /livez and of a member's
// /profile meanwhile, and the growth of the server's memory.
import './own-node.mjs';
import { connect } from 'node:net';
import { build } from '../bin/build.mjs';
import { freePort } from '../bin/postgres.mjs';
import { openDataset } from './data.mjs';
import { startOurs } from './servers.mjs';
import { memoryMegabytes } from './usage.mjs';

const SECONDS = 10;
const request = (path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

await build();
const dataset = await openDataset(2_000);
const metricsPort = await freePort();
const server = await startOurs(dataset, { METRICS_PORT: metricsPort });
const port = Number(new URL(server.url).port);
const open = () => {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined); // the server cuts it off
  return socket;
};

/** What attackers do while others send requests; each ends what it began. */
const ATTACKS = {
  'nothing else': async () => pause(SECONDS * 1000),
  '12 connections, 65 KB of openapi.json each, never read': async () => {
    const text = request('/api/public/openapi.json').repeat(1_250);
    const sockets = Array.from({ length: 12 }, () => open().pause());
    for (const socket of sockets) socket.write(text);
    await pause(SECONDS * 1000);
    for (const socket of sockets) socket.destroy();
  },
  'one write of 62 KB every 250 ms': async () => {
    const text = request('/api/public/profile').repeat(1_300);
    for (let n = 0; n < SECONDS * 4; n++) {
      const socket = open().resume();
      socket.write(text);
      await pause(250);
      socket.destroy();
    }
  },
  '1,500 times /readyz every 250 ms': async () => {
    const socket = open().resume();
    for (let n = 0; n < SECONDS * 4; n++) {
      socket.write(request('/readyz').repeat(1_500));
      await pause(250);
    }
    socket.destroy();
  },
};

try {
  for (let n = 0; n < 500; n++) await ask('/api/public/profile'); // warm
  await ask('/api/public/openapi.json');
  console.log(
    '| Attack | Event loop, ms | /livez, ms | /profile, ms | Memory |\n| --- | ---: | ---: | ---: | ---: |',
  );
  for (const [name, attack] of Object.entries(ATTACKS)) {
    await lag(); // resets the maximum
    const before = memoryMegabytes(server.pid);
    let attacking = true;
    const slowest = { '/livez': 0, '/api/public/profile': 0 };
    const asking = Object.keys(slowest).map(async (path) => {
      for (; attacking; await pause(10)) {
        const begun = performance.now();
        await ask(path);
        slowest[path] = Math.max(slowest[path], performance.now() - begun);
      }
    });
    await attack();
    attacking = false;
    await Promise.all(asking);
    const [livez, profile] = Object.values(slowest).map((ms) => ms.toFixed(0));
    const grown = (memoryMegabytes(server.pid) - before).toFixed(0);
    console.log(`| ${name} | ${(await lag()).toFixed(0)} | ${livez} | ${profile} | +${grown} MB |`);
  }
} finally {
  await server.stop();
  await dataset.stop();
}

async function ask(path) {
  const response = await fetch(server.url + path, { headers: { 'X-API-Key': dataset.keys[0] } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} to ${path}: ${text}`);
}

/** @returns the longest delay in ms since it was last asked */
async function lag() {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)[1]);
}
