#!/usr/bin/env node
// What a tool of an assistant costs against the call that it makes: `node bin/with-postgres.mjs node bench/assistants.mjs [rounds]`. Processor time
// of the server for each, measured in turns; what the protocol's SDK takes for the same bytes with nothing behind it (peers/assistants.mjs); and
// what the server's memory grows by with the first message.
import './own-node.mjs';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { startFresh } from './fresh-server.mjs';

const ROUNDS = Number(process.argv[2] ?? 5);
const CALLS = 1_500;
const AT_ONCE = 8;
const REVISION = '2026-07-28';

process.env.ASSISTANTS = 'true';
const { pua, url, database, pid, end } = await startFresh();
const { rows } = await database.query(
  `INSERT INTO users (username, bio) VALUES ('bench', 'Here for the hikes') RETURNING id`,
);
const [{ id }] = rows;
await database.query(
  `WITH e AS (INSERT INTO events (title, status, visibility, starts_at, timezone, organizer_id)
    SELECT 'Event ' || n, 'scheduled', 'public', now() + make_interval(days => n), 'UTC', $1 FROM generate_series(1, 40) n RETURNING id, starts_at)
   INSERT INTO participants (event_id, user_id, role, starts_at) SELECT id, $1, 'organizer', starts_at FROM e`,
  [id],
);
const key = pua(
  'keys',
  'create',
  '--user',
  'bench',
  '--name',
  'bench',
  '--scopes',
  'profile:read,events:read',
);

const get = (path) => () => fetch(`${url}/api/public${path}`, { headers: { 'X-API-Key': key } });
const call = (name, address = `${url}/api/public/mcp`) => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: {}, _meta },
  });
  const headers = {
    'X-API-Key': key,
    'Content-Type': 'application/json',
    'MCP-Protocol-Version': REVISION,
    'Mcp-Method': 'tools/call',
    'Mcp-Name': name,
  };
  return () => fetch(address, { method: 'POST', headers, body });
};

const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
/** User and system time of the process so far, in microseconds. */
function cpu(of) {
  const fields = readFileSync(`/proc/${of}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

async function cost(request, { calls = CALLS, of = pid } = {}) {
  const before = cpu(of);
  let left = calls;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0) {
        const response = await request();
        if (response.status !== 200) throw new Error(await response.text());
        await response.arrayBuffer();
      }
    }),
  );
  return (cpu(of) - before) / calls;
}

const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
/** Of a route and the tool that it is, the middle of the rounds: microseconds of each, and of what the tool adds. */
async function compare(name, route, tool, of) {
  await cost(route, { of });
  await cost(tool, { of });
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++)
    rounds.push([await cost(route, { of }), await cost(tool, { of })]);
  const [ofRoute, ofTool] = [0, 1].map((i) => median(rounds.map((costs) => costs[i])));
  const times = median(rounds.map(([one, other]) => other / one));
  const more = median(rounds.map(([one, other]) => other - one));
  const all = [`route ${ofRoute.toFixed(0)} µs`, `tool ${ofTool.toFixed(0)}`, `${more.toFixed(0)} more`];
  console.log(`${name}: ${all.join(', ')}, ${times.toFixed(2)} times the route`);
}

await cost(get('/profile'));
const before = memory();
await cost(call('get_profile'), { calls: 1 });
console.log(`memory with the first message: +${(memory() - before).toFixed(1)} MB`);
await compare('get_profile', get('/profile'), call('get_profile'));
await compare('list_events', get('/events'), call('list_events'));

const page = await (await get('/events')()).text();
const peer = fork('bench/peers/assistants.mjs', [page, REVISION]);
const [port] = await once(peer, 'message');
const bare = `http://127.0.0.1:${port}/`;
await compare('the same page by the SDK alone', () => fetch(bare), call('list_events', bare), peer.pid);
peer.kill();
await end();
