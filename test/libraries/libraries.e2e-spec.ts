import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { describeAssistants, LANGUAGES as ASSISTANTS } from '../../compat/assistants.js';
import { LANGUAGES, runsOf, SignIns } from '../../compat/sign-ins.js';

/** One library for each language; `npm run compat` runs all of them. */
const SMOKE = {
  node: 'openid-client',
  python: 'authlib_client',
  go: 'oidc',
  java: 'Nimbus',
  rust: 'openidconnect',
  ruby: 'oauth2',
};

// Only where LIBRARIES is set: the libraries come from the registries of their languages.
(process.env.LIBRARIES ? describe : describe.skip)('other people’s libraries', () => {
  let signIns: SignIns;
  beforeAll(async () => {
    signIns = await SignIns.start();
  });
  afterAll(() => signIns.close());

  it.each(Object.entries(SMOKE))(
    'libraries in %s sign a member in and call the API: %s',
    async (name, program) => {
      await signIns.install(name);
      const [run] = runsOf(LANGUAGES[name]!).filter(([one]) => one === program);
      await signIns.signIn(name, run!);
    },
  );

  const { client } = ASSISTANTS.node.programs;
  describeAssistants({ node: { ...ASSISTANTS.node, programs: { client: client! } } });
});
