import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { EXAMPLES } from '../../src/features/openapi/examples.js';
import { FIRST_ID, seedDemo } from '../../src/operations/demo/demo.js';
import { snippetsOf } from '../../src/site/snippets.js';
import { postgres } from '../support/database.js';
import { OauthTest } from '../support/oauth.js';

const run = promisify(execFile);
const MINUTE = 60_000;

/** How each language is run: the file that holds the snippet, and the program that takes it. */
const PROGRAMS: Record<string, readonly [file: string, ...command: string[]]> = {
  curl: ['request.sh', 'sh'],
  javascript: ['request.mjs', process.execPath],
  python: ['request.py', 'python3'],
  go: ['request.go', 'go', 'run'],
  php: ['request.php', 'php'],
};

// Five programs that not every machine has: with the tests on PostgreSQL, which .ci/run runs too.
postgres.describe('The requests of the reference', () => {
  let oauth: OauthTest;
  let key: string;
  let folder: string;
  beforeAll(async () => {
    oauth = await OauthTest.start({ seedDemo: true });
    await seedDemo(oauth.dataSource);
    key = await oauth.api.key(FIRST_ID);
    folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'snippets-'));
  }, MINUTE);
  afterAll(() => oauth.close());

  it.each(Object.keys(PROGRAMS))(
    'are answered as they stand, in %s: a list, a change, and a call without a credential',
    async (language) => {
      const [file, program, ...options] = PROGRAMS[language]!;
      for (const [name, withKey, expected] of [
        ['listEvents', true, 'Compilers Online'],
        ['updateProfile', true, 'Engines, poetry, cake.'],
        ['getProblem', false, 'validation_failed'],
      ] as const) {
        const { request } = EXAMPLES[name]![0]!;
        const { code } = snippetsOf(request, oauth.issuer, withKey).find(
          (each) => each.language === language,
        )!;
        writeFileSync(join(folder, file), code);
        const environment = { ...process.env, API_KEY: key, NODE_OPTIONS: '' };
        const { stdout } = await run(program!, [...options, file], { cwd: folder, env: environment });
        expect([name, stdout]).toEqual([name, expect.stringContaining(expected)]);
      }
    },
    2 * MINUTE,
  );

  it('are there for every call, in every language', () => {
    for (const [name, [example]] of Object.entries(EXAMPLES))
      expect([
        name,
        snippetsOf(example!.request, 'https://api.example', true).map(({ language }) => language),
      ]).toEqual([name, Object.keys(PROGRAMS)]);
  });
});
