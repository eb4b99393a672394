import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { describeAssistants, LANGUAGES as ASSISTANTS } from '../../compat/assistants.js';
import { installLanguage, startProgram } from '../../compat/languages.js';
import { LANGUAGES, runsOf, SignIns } from '../../compat/sign-ins.js';
import { REDIRECT_URI } from '../support/oauth.js';
import { Year } from '../support/year.js';

/** One library for each language; `npm run compat` runs all of them. */
const SMOKE = {
  node: 'openid-client',
  python: 'authlib_client',
  go: 'oidc',
  java: 'Nimbus',
  rust: 'openidconnect',
  ruby: 'oauth2',
};

// Only with LIBRARIES set: the libraries come from the registries of their languages.
(process.env.LIBRARIES ? describe : describe.skip)('third-party libraries', () => {
  let signIns: SignIns;
  beforeAll(async () => {
    signIns = await SignIns.start();
  });
  afterAll(() => signIns.close());

  it.each(Object.entries(SMOKE))('in %s sign a member in and call the API: %s', async (name, program) => {
    await signIns.install(name);
    const [run] = runsOf(LANGUAGES[name]!).filter(([one]) => one === program);
    await signIns.signIn(name, run!);
  });

  it.each([
    ['oidc-client-ts', 'compat/node', ''],
    ['the MCP SDK', 'compat/assistants/node', '/api/public/mcp'],
  ])('stay signed in for a year with one sign-in: %s', async (_, from, path) => {
    const folder = mkdtempSync(join(tmpdir(), 'pua-year-'));
    await installLanguage('node', LANGUAGES.node!, from, folder);
    const year = await Year.start();
    const { issuer } = year.oauth;
    const settings = {
      ISSUER: issuer,
      ADDRESS: issuer + path,
      CLIENT: year.clientId,
      CLIENT_ID: year.clientId,
    };
    const program = startProgram(LANGUAGES.node!, folder, 'harness-year', { ...settings, REDIRECT_URI });
    const { child, lines, errors } = program;
    const next = async () => {
      const line = await lines.next();
      if (line.done) throw new Error(await errors);
      return line.value;
    };
    try {
      child.stdin.write(`${(await year.signIn(await next())).href}\n`);
      expect(await next()).toBe(String(year.member.id));
      await year.pass(async () => {
        child.stdin.write('\n');
        return Number(await next());
      });
    } finally {
      child.kill();
      await year.close();
      rmSync(folder, { recursive: true });
    }
  });

  const { client } = ASSISTANTS.node.programs;
  describeAssistants({ node: { ...ASSISTANTS.node, programs: { client: client! } } });
});
