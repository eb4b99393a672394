import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePort, OauthTest } from '../test/support/oauth.js';
import { installPackages } from '../test/support/packages.js';
import { RoundRobin } from '../test/support/round-robin.js';

/*
 * Runs the Model Context Protocol's own conformance suite against the assistants' URL. The suite cannot send a credential: a proxy adds a credential.
 */

const HERE = join(import.meta.dirname, 'conformance');
const BASELINE = join(HERE, 'baseline.yml');
const PATH = '/api/public/mcp';

describe('the MCP conformance suite', () => {
  let folder: string;
  let suite: string;
  let oauth: OauthTest;
  let proxy: RoundRobin;
  let username: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-conformance-'));
    suite = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
    oauth = await OauthTest.start({ assistants: true, clientIdMetadataDocuments: true });
    proxy = await RoundRobin.start();
    ({ username } = await oauth.member());
    const { access_token: token } = await oauth.tokens(await oauth.client(), username);
    proxy.targets = [oauth.issuer];
    proxy.headers = { Authorization: `Bearer ${token}` };
    await installPackages(folder, HERE);
  });
  afterAll(async () => {
    await proxy.close();
    await oauth.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const suiteOf = (command: string, options: Record<string, string>) => [
    suite,
    command,
    ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
  ];

  // The suite has a single scenario for 2025-03-26.
  it.each([
    ['2025-03-26', 1],
    ['2025-06-18', 27],
    ['2025-11-25', 33],
    ['2026-07-28', 40],
  ])('finds in revision %s only failures that the baseline lists', async (revision, scenarios) => {
    const options = { url: proxy.url + PATH, suite: 'all', 'spec-version': revision };
    const parameters = suiteOf('server', { ...options, 'expected-failures': BASELINE });
    const { code, stdout } = await promisify(execFile)(process.execPath, parameters)
      .then((done) => ({ code: 0, ...done }))
      .catch((error: { code: number; stdout: string }) => error);
    const [, summary = stdout] = stdout.split('=== SUMMARY ===');
    expect(code === 0 ? 'as the baseline says' : summary).toBe('as the baseline says');
    expect(summary.match(/^[✓✗] /gmu)).toHaveLength(scenarios);
  });

  it('finds no failure in the authorization server’s metadata or in a sign-in for the assistants’ URL', async () => {
    const port = await freePort();
    const client = await oauth.client({ redirect_uris: [`http://127.0.0.1:${port}/callback`] });
    const options = {
      url: oauth.issuer,
      'client-id': client,
      resource: oauth.issuer + PATH,
      port: `${port}`,
    };
    const child = spawn(process.execPath, suiteOf('authorization', options));
    const lines: string[] = [];
    let url: URL | undefined;
    for await (const line of createInterface(child.stdout)) {
      lines.push(line);
      if (line.startsWith(`${oauth.issuer}/`)) url = new URL(line);
      if (!line.startsWith('Callback server started')) continue;
      url!.searchParams.set('scope', 'events:read'); // the suite requests no scope, although the challenge names one
      await (await fetch(await oauth.browser().authorize(url!, { username }))).text();
    }
    expect(lines.join('\n')).toMatch(/Total: 3 passed, 0 failed/);
  });

  it('states a reason for every failure in the baseline', () => {
    const entries = readFileSync(BASELINE, 'utf8').match(/^ +- .*$/gm)!;
    expect(entries.filter((entry) => !/^ {2}- [\w-]+:[\w-]+ # \w+/.test(entry))).toEqual([]);
  });
});
