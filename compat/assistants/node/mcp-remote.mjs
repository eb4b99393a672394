import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ADDRESS, CLIENT, done, REDIRECT_URI, signIn, WEEK } from './harness.mjs';

const { hostname, port, pathname } = new URL(REDIRECT_URI);
// docs: mcp-remote · Connects assistants that only start programs · nothing
const args = [
  'node_modules/mcp-remote/dist/proxy.js',
  ADDRESS,
  port,
  '--host',
  hostname,
  '--callback-path',
  pathname,
  '--client-metadata-url',
  CLIENT, // the URL of your metadata document
];
// end
const transport = new StdioClientTransport({
  command: process.execPath,
  args,
  env: process.env,
  stderr: 'pipe',
});
createInterface(transport.stderr).on('line', (line) => {
  const url = /^https?:\/\/\S+\/oauth\/authorize\?\S+/.exec(line)?.[0];
  if (url !== undefined) void signIn(url);
});
const client = new Client({ name: 'week-planner', version: '1.0.0' });
await client.connect(transport);
const { tools } = await client.listTools();
await done(tools, await client.callTool(WEEK), (tool) => client.callTool(tool));
