#!/usr/bin/env node
// What the lists of members with very much data cost, and their effect on others: `node bench/big-members.mjs [users]` (1,000,000).
// Requests every documented filter and sort of events and connections, as in the OpenAPI document, first page and next, by the
// member with 20,000 events and the one with 100,000 connections; then /profile and /events of a thousand ordinary members at a
// fixed rate, alone and beside ten callers who request only those lists.
import './own-node.mjs';
import { build } from '../bin/build.mjs';
import { openDataset } from './data.mjs';
import { request, runGenerator } from './generator.mjs';
import { startOurs } from './servers.mjs';

const API = '/api/public';
const USERS = Number(process.argv[2] ?? 1_000_000);
const TIMES = 5;
const CALLERS = 10;
const RATE = 200;
const SECONDS = 20;
/** Search texts that match much, little, and nothing. */
const TEXTS = ['me', 'ad', 'zz'];

await build();
const dataset = await openDataset(USERS);
const server = await startOurs(dataset);
try {
  const { paths } = await (await fetch(`${server.url}${API}/openapi.json`)).json();
  const calls = [
    ...callsOf(paths, 'events').map((path) => ({ path, key: dataset.manyEvents })),
    ...callsOf(paths, 'connections').map((path) => ({ path, key: dataset.manyConnections })),
  ];
  const rows = [];
  for (const { path, key } of calls) {
    const first = await timesOf(path, key);
    const { next_cursor: next } = first.body.pagination ?? {};
    const following = next && (await timesOf(`${path}${path.includes('?') ? '&' : '?'}cursor=${next}`, key));
    rows.push({ path, total: first.body.pagination?.total, first: first.ms, next: following?.ms });
  }
  rows.sort((a, b) => worst(b) - worst(a));
  console.log('| Call | Total | First page, ms | Next page, ms |\n| --- | ---: | ---: | ---: |');
  for (const { path, total, first, next } of rows)
    console.log(`| \`${path}\` | ${total} | ${first.toFixed(1)} | ${next?.toFixed(1) ?? ''} |`);

  const usual = dataset.keys.flatMap((key) =>
    ['profile', 'events'].map((list) => request(`${API}/${list}`, `X-API-Key: ${key}`)),
  );
  const load = { port: new URL(server.url).port, requests: usual, rate: RATE, connections: 32 };
  await runGenerator({ ...load, seconds: 5 }); // warm
  const alone = (await runGenerator({ ...load, seconds: SECONDS })).outcome;
  let asking = true;
  const counts = { answered: 0, refused: 0 };
  const callers = Array.from({ length: CALLERS }, async (_, i) => {
    for (let n = i; asking; n += CALLERS - 1) {
      const { path, key } = calls[n % calls.length];
      const { status, text } = await get(path, key);
      if (status === 200) counts.answered++;
      else if (status === 503) counts.refused++;
      else throw new Error(`${status} to ${path}: ${text}`);
    }
  });
  const beside = (await runGenerator({ ...load, seconds: SECONDS })).outcome;
  asking = false;
  await Promise.all(callers);
  for (const [name, { answered, refused, failed }] of Object.entries({ alone, beside }))
    console.log(
      `${name}: p50 ${answered.p50.toFixed(1)} ms, p95 ${answered.p95.toFixed(1)} ms, p99 ${answered.p99.toFixed(1)} ms; ` +
        `${answered.count} answered, ${refused.count} refused, ${failed} failed`,
    );
  console.log(`the ${CALLERS} callers: ${counts.answered} answered, ${counts.refused} refused`);
} finally {
  await server.stop();
  await dataset.stop();
}

function worst({ first, next = 0 }) {
  return Math.max(first, next);
}

/** Each parameter by itself, with each of its values. */
function callsOf(paths, list) {
  const path = `${API}/${list}`;
  const values = ({ name, schema }) => {
    if (name === 'q') return TEXTS;
    if (/_(after|before|since)$/.test(name)) return ['2024-06-01T00:00:00Z'];
    if (schema.type === 'boolean') return ['true', 'false'];
    const one = schema.enum ?? schema.items?.enum ?? [];
    return schema.type === 'array' ? [...one, one.slice(0, 2).join(','), one.join(',')] : one;
  };
  const parameters = paths[path].get.parameters.filter(
    ({ name, in: where }) => where === 'query' && !['limit', 'cursor'].includes(name),
  );
  const sorts = parameters.find(({ name }) => name === 'sort').schema.enum;
  return [
    path,
    ...parameters.flatMap((parameter) =>
      values(parameter).map((value) => `${path}?${parameter.name}=${encodeURIComponent(value)}`),
    ),
    ...sorts.flatMap((sort) => TEXTS.map((q) => `${path}?q=${q}&sort=${sort}`)),
  ];
}

async function get(path, key) {
  const response = await fetch(server.url + path, { headers: { 'X-API-Key': key } });
  return { status: response.status, text: await response.text() };
}

/** The slowest of several calls, without the very first. */
async function timesOf(path, key) {
  let ms = 0;
  let answer;
  for (let n = 0; n <= TIMES; n++) {
    const asked = performance.now();
    answer = await get(path, key);
    if (answer.status !== 200) throw new Error(`${answer.status} to ${path}: ${answer.text}`);
    if (n > 0) ms = Math.max(ms, performance.now() - asked);
  }
  return { ms, body: JSON.parse(answer.text) };
}
