import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { ADDRESS, CLIENT, done, REDIRECT_URI, signIn, WEEK } from './harness.mjs';

/** Runs the inspector's command line and signs the member in when it prints the URL. @returns its output */
async function inspect(...method) {
  // docs: @modelcontextprotocol/inspector · Its command line · a terminal, or `MCP_AUTO_OPEN_ENABLED=true`; `--protocol-era auto` for 2026-07-28
  const inspector = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';
  const options = {
    transport: 'http',
    'client-metadata-url': CLIENT, // the URL of your metadata document
    'callback-url': REDIRECT_URI,
    'protocol-era': 'auto',
    format: 'json',
  };
  const parameters = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn(process.execPath, [inspector, '--cli', ADDRESS, ...parameters, ...method], {
    // Not needed in a terminal.
    env: { ...process.env, MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' },
  });
  // end
  process.removeAllListeners('SIGTERM').once('SIGTERM', () => {
    child.kill(); // the program may be waiting for the member
    process.exit();
  });
  child.stdin.end('y\n'); // yes, request another scope
  const printed = text(child.stdout);
  const said = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    const url = /https?:\/\/\S+\/oauth\/authorize\S+/.exec(line)?.[0];
    if (url !== undefined) void signIn(url);
  }
  const result = await printed;
  if (result === '') throw new Error(said.at(-1));
  return JSON.parse(result).result;
}

const call = ({ name, arguments: values }) =>
  inspect('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(values));
const { tools } = await inspect('--method', 'tools/list');
await done(tools, await call(WEEK), call);
