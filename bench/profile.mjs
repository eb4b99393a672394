#!/usr/bin/env node
// `npm run bench:profile -- events [users]`: where this server's CPU time goes while it answers one kind of request, or issues
// codes (`authorize`), redeems them (`exchange`) or rotates refresh tokens (`refresh`): by layer, by package and by function. The
// profile itself is kept in bench/.data/profiles, for Chrome's developer tools.
import './own-node.mjs';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { layerOf } from './layers.mjs';
import { measure, requireWrk } from './load.mjs';
import { Flow, prepareMembers, signIn } from './oauth.mjs';
import { apiKey, COMPARED, OTHERS, requestsOf } from './questions.mjs';
import { startOurs } from './servers.mjs';

const wanted = process.argv[2] ?? 'profile';
const users = Number(process.argv[3] ?? 100_000);
/** In order: each needs the one before. */
const KINDS = ['authorize', 'exchange', 'refresh'];
const load = { connections: 32, seconds: 8 };
const question = [...COMPARED, ...OTHERS].find(({ name }) => name.includes(wanted));
if (!question && !KINDS.includes(wanted)) {
  console.error(`There is no question with "${wanted}" in its name`);
  process.exit(2);
}
const folder = join(import.meta.dirname, '.data/profiles');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

requireWrk();
await build();
const dataset = await openDataset(users);
let requests = 0;
/** When profiling begins, in µs since the server's start. */
let beganMicroseconds = 0;
try {
  const started = performance.now();
  const server = await startOurs(dataset, {}, ['--cpu-prof', `--cpu-prof-dir=${folder}`]);
  const generate = question ? () => askQuestion(server) : await flowOf(server);
  beganMicroseconds = 1000 * (performance.now() - started);
  const turn = await generate();
  requests = turn.requests;
  console.log(
    `${question?.name ?? wanted}: ${Math.round(turn.rate)}/s, ${turn.serverCpu.toFixed(0)} µs of CPU a request (profiled)\n`,
  );
  await server.stop();
} finally {
  await dataset.stop();
}

const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'));
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
const self = new Map();
let elapsed = 0;
for (const [i, id] of samples.entries()) {
  elapsed += timeDeltas[i];
  if (elapsed > beganMicroseconds) self.set(id, (self.get(id) ?? 0) + timeDeltas[i]);
}
const layers = new Map();
const packages = new Map();
const functions = new Map();
const add = (times, name, time) => times.set(name, (times.get(name) ?? 0) + time);
for (const { id, callFrame } of nodes) {
  const time = self.get(id) ?? 0;
  const { functionName, url, lineNumber } = callFrame;
  if (functionName === '(idle)') continue;
  add(layers, layerOf(callFrame), time);
  add(packages, packageOf(url, functionName), time);
  const place = `${functionName || '(anonymous)'} ${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`;
  add(functions, place, time);
}
print('Layer', layers, 20);
print('Package', packages, 25);
print('Function', functions, 40);

function askQuestion(server) {
  return measure(server, question, requestsOf(question, dataset.keys.map(apiKey)), load);
}

/** Runs the flow up to the kind of request to profile. @returns what sends those requests */
async function flowOf(server) {
  const { browsers } = await signIn(server, (await prepareMembers(dataset)).slice(0, 32));
  const flow = new Flow(server, browsers, 3_000);
  for (const kind of KINDS.slice(0, KINDS.indexOf(wanted))) await flow[kind]();
  return () => flow[wanted]();
}

function packageOf(url, functionName) {
  if (url === '') return functionName; // (program), (garbage collector), built-ins
  const modules = url.split('node_modules/');
  if (modules.length > 1) return modules.pop().match(/^(@[^/]+\/[^/]+|[^/]+)/)[0];
  return url.startsWith('node:')
    ? url.split('/')[0] + '/' + url.split('/').slice(1).join('/')
    : url.replace(/.*\/dist\//, '');
}

function print(title, times, most) {
  const sum = [...times.values()].reduce((a, b) => a + b, 0);
  console.log(`${title.padEnd(70)}    %   µs/request`);
  for (const [name, time] of [...times].sort((a, b) => b[1] - a[1]).slice(0, most)) {
    console.log(
      `${name.padEnd(70)} ${((100 * time) / sum).toFixed(1).padStart(5)} ${(time / requests).toFixed(1).padStart(8)}`,
    );
  }
  console.log();
}
