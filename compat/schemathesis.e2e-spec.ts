import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OauthTest } from '../test/support/oauth.js';
import { makePython } from '../test/support/packages.js';

/*
 * Sends a server the requests that Schemathesis generates from the OpenAPI documents: permitted requests, forbidden ones, and sequences.
 * The document must declare each response, which must match its schema.
 */

const HERE = join(import.meta.dirname, 'schemathesis');
const run = promisify(execFile);

/** Not checked: a document cannot state whether a cursor, an If-Match or a combination of parameters is valid. */
const NOT_CHECKED = 'positive_data_acceptance';

describe('Schemathesis', () => {
  let folder: string;
  let programs: string;
  let oauth: OauthTest;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-schemathesis-'));
    oauth = await OauthTest.start({ rateLimits: { read: 0, write: 0, auth: 0 } });
    programs = await makePython(folder, join(HERE, 'requirements.txt'));
  });
  afterAll(async () => {
    await oauth.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each([
    ['members', '/api/public/openapi.json', 16],
    // Without the feed: Schemathesis cannot write JSON lines; bench/fuzz.mjs can.
    ['the platform', '/api/platform/openapi.json', 1],
  ])('finds no undocumented response for %s in %s', async (whose, document, operations) => {
    const { platform } = oauth.api;
    const { id } = await oauth.member();
    await platform.participant(await platform.event(), id);
    await platform.connection(id, await platform.user());
    await platform.progress(id, await platform.achievement(), { earned_at: '2024-01-01T10:00:00Z' });
    const key = whose === 'members' ? await oauth.api.key(id) : await oauth.api.platformKey();
    const options = {
      url: oauth.issuer,
      header: `X-API-Key: ${key}`,
      'exclude-checks': NOT_CHECKED,
      'exclude-path': '/api/platform/records',
      'max-examples': '30',
      // The platform’s only operation links to itself, and waits for changes as long as requested.
      phases: whose === 'members' ? 'examples,coverage,fuzzing,stateful' : 'examples,coverage,fuzzing',
      'request-timeout': '40',
      'suppress-health-check': 'all',
    };
    const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    const { stdout } = await run(
      join(programs, 'st'),
      ['run', oauth.issuer + document, ...flags, '--generation-deterministic', '--no-color'],
      { cwd: folder, env: { ...process.env, NO_PROXY: '*' }, maxBuffer: 10_000_000 },
    ).catch((error: { stdout: string }) => ({ stdout: error.stdout }));
    expect(stdout).toMatch(new RegExp(`Tested: ${operations}\\b`));
    expect(stdout).toMatch(/(\d+) generated, \1 passed/);
    expect(stdout).not.toMatch(/❌|🚫/u);
  });
});
