import { execFile } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { EXAMPLES } from '../../src/openapi/examples.js';
import { FIRST_ID, seedDemo } from '../../src/operations/demo/demo.js';
import { writeSnippets } from '../../src/site/script/snippets.js';
import { postgres } from '../support/database.js';
import { serve } from '../support/http-server.js';
import { OauthTest } from '../support/oauth.js';

const run = promisify(execFile);

/** The command for each language: the file that contains the snippet, and the program that runs it. */
const PROGRAMS: Record<string, readonly [file: string, ...command: string[]]> = {
  curl: ['request.sh', 'sh'],
  javascript: ['request.mjs', process.execPath],
  python: ['request.py', 'python3'],
  go: ['request.go', 'go', 'run'],
  php: ['request.php', 'php'],
};

// Needs five programs that not every host has, so it runs only with the tests on PostgreSQL, as in .ci/run.
postgres.describe('the sample requests of the API reference', () => {
  let oauth: OauthTest;
  let key: string;
  let folder: string;
  beforeAll(async () => {
    oauth = await OauthTest.start({ seedDemo: true });
    await seedDemo(oauth.dataSource);
    key = await oauth.api.key(FIRST_ID);
    folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'snippets-'));
  });
  afterAll(() => oauth.close());

  async function outputOf(language: string, code: string): Promise<string> {
    const [file, program, ...options] = PROGRAMS[language]!;
    writeFileSync(join(folder, file), code);
    const env = { ...process.env, API_KEY: key, NODE_OPTIONS: '' };
    return (await run(program!, [...options, file], { cwd: folder, env })).stdout;
  }

  it.each(Object.keys(PROGRAMS))(
    'succeed unchanged in %s: a list, a change, and a request without a credential',
    async (language) => {
      for (const [name, withKey, expected] of [
        ['listEvents', true, 'Analytical Engine Night'],
        ['updateProfile', true, 'Engines, poetry, cake.'],
        ['getProblem', false, 'validation_failed'],
      ] as const) {
        const { request } = EXAMPLES[name]![0]!;
        const { code } = writeSnippets(request, oauth.issuer, withKey).find(
          (each) => each.language === language,
        )!;
        expect([name, await outputOf(language, code)]).toEqual([name, expect.stringContaining(expected)]);
      }
    },
  );

  it.each(Object.keys(PROGRAMS))('send typed input unchanged, in %s', async (language) => {
    const typed = `it's "Ümlaut" \\ \\n \`id\` $HOME \${x} %d <b> 🎉 true null`;
    const sent = {
      method: 'PUT',
      path: `/a/${encodeURIComponent(typed)}?${String(new URLSearchParams({ q: typed }))}`,
      body: { typed, list: [true, false, null, -1.5], 'a "key"': `lines\nand\ttabs` },
      headers: { 'If-Match': `"it's $HOME \\ \`id\`"` },
    };
    let received: unknown;
    const echo = await serve(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url!, 'http://any');
      received = {
        method: request.method,
        typed: [decodeURIComponent(pathname.slice('/a/'.length)), searchParams.get('q')],
        headers: { 'If-Match': request.headers['if-match'] },
        type: request.headers['content-type'],
        body: JSON.parse(await text(request)) as unknown,
      };
      response.end('{}');
    });
    const written = writeSnippets(sent, echo.url, true);
    await outputOf(language, written.find((each) => each.language === language)!.code).finally(echo.close);
    const { method, body, headers } = sent;
    expect(received).toEqual({ method, body, headers, type: 'application/json', typed: [typed, typed] });
  });
});
