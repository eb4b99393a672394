#!/usr/bin/env node
// What a tool of an assistant costs against the call that it makes: `node bin/with-postgres.mjs node bench/assistants.mjs [rounds]`. Processor time
// of the server for each, measured in turns, and what its memory grows by with the first message.
import './own-node.mjs';
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
const call = (name) => {
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
  return () => fetch(`${url}/api/public/mcp`, { method: 'POST', headers, body });
};

const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
/** User and system time of the server so far, in microseconds. */
function cpu() {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

async function cost(request, calls = CALLS) {
  const before = cpu();
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
  return (cpu() - before) / calls;
}

const pairs = [
  { name: 'get_profile', route: get('/profile'), tool: call('get_profile') },
  { name: 'list_events', route: get('/events'), tool: call('list_events') },
];
for (const { route } of pairs) await cost(route);
const before = memory();
await cost(pairs[0].tool, 1);
console.log(`memory with the first message: +${(memory() - before).toFixed(1)} MB`);
for (const { name, route, tool } of pairs) {
  await cost(tool);
  const ratios = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [ofRoute, ofTool] = [await cost(route), await cost(tool)];
    ratios.push(ofTool / ofRoute);
    console.log(`${name}: route ${ofRoute.toFixed(0)} µs, tool ${ofTool.toFixed(0)} µs`);
  }
  const median = ratios.toSorted((one, other) => one - other)[Math.floor(ROUNDS / 2)];
  console.log(`${name}: ${median.toFixed(2)} times the route`);
}
await end();
