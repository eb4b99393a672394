import { ADDRESS, CLIENT, done, REDIRECT_URI, SCOPE, signIn, WEEK } from './harness.mjs';
// docs: @ai-sdk/mcp · The flow above · storing tokens
import { auth, createMCPClient, UnauthorizedError } from '@ai-sdk/mcp';

const kept = {}; // store these tokens where no other user can read them
let back;
const authProvider = {
  redirectUrl: REDIRECT_URI,
  clientMetadata: { redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'none' },
  clientInformation: () => ({ client_id: CLIENT }), // the URL of your metadata document
  authorizationServerInformation: () => kept.server,
  saveAuthorizationServerInformation: (server) => void (kept.server = server),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  state: () => crypto.randomUUID(),
  saveState: (state) => void (kept.state = state),
  storedState: () => kept.state,
  redirectToAuthorization: async (url) => {
    // Requests all scopes at once: this client never requests another scope.
    if (SCOPE) url.searchParams.set('scope', SCOPE);
    back = (await signIn(url)).searchParams;
  },
};
const connect = () => createMCPClient({ transport: { type: 'http', url: ADDRESS, authProvider } });
const client = await connect().catch(async (error) => {
  if (!(error instanceof UnauthorizedError)) throw error;
  const [authorizationCode, callbackState, callbackIssuer] = ['code', 'state', 'iss'].map((name) =>
    back.get(name),
  );
  await auth(authProvider, { serverUrl: ADDRESS, authorizationCode, callbackState, callbackIssuer });
  return connect();
});
const { tools } = await client.listTools();
const answer = await client.callTool(WEEK);
// end
await done(tools, answer, (tool) => client.callTool(tool));
