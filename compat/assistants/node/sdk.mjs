import { ADDRESS, CLIENT, done, REDIRECT_URI, SCOPE, signIn, WEEK } from './harness.mjs';
// docs: @modelcontextprotocol/sdk · Revisions up to 2025-11-25 · the check of `state`
const { SDK = '@modelcontextprotocol/sdk' } = process.env;
const { UnauthorizedError } = await import(`${SDK}/client/auth.js`);
const { Client } = await import(`${SDK}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${SDK}/client/streamableHttp.js`);

const kept = {}; // store these tokens where no other user can read them
let back;
const authProvider = {
  redirectUrl: REDIRECT_URI,
  clientMetadataUrl: CLIENT, // the URL of your metadata document
  clientMetadata: { redirect_uris: [REDIRECT_URI] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  state: () => (kept.state = crypto.randomUUID()),
  redirectToAuthorization: async (url) => {
    // Requests all scopes at once: this version never requests another scope.
    if (SCOPE) url.searchParams.set('scope', SCOPE);
    back = await signIn(url);
  },
};
const client = new Client({ name: 'week-planner', version: '1.0.0' });
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(ADDRESS), { authProvider });
  return client.connect(transport).catch(async (error) => {
    if (!(error instanceof UnauthorizedError)) throw error;
    if (back.searchParams.get('state') !== kept.state) throw new Error('not the sign-in that was begun here');
    await transport.finishAuth(back.searchParams.get('code'));
    await connect();
  });
};
await connect();
const { tools } = await client.listTools();
const answer = await client.callTool(WEEK);
// end
await done(tools, answer, (tool) => client.callTool(tool));
