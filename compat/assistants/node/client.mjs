import { ADDRESS, CLIENT, done, REDIRECT_URI, signIn, WEEK } from './harness.mjs';
// docs: @modelcontextprotocol/client · The client of TypeScript SDK 2 · the check of `state`; `versionNegotiation` for 2026-07-28
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const kept = {}; // one per issuer; store the tokens where no other user can read them
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
  redirectToAuthorization: async (url) => void (back = await signIn(url)),
};
const versionNegotiation = { mode: 'auto' };
const client = new Client({ name: 'week-planner', version: '1.0.0' }, { versionNegotiation });
let transport;
/** Signs the member in when the server requires it: at the start, and for another scope. */
const signedIn = (work) =>
  work().catch(async (error) => {
    if (!(error instanceof UnauthorizedError)) throw error;
    if (back.searchParams.get('state') !== kept.state) throw new Error('not the sign-in that was begun here');
    await transport.finishAuth(back.searchParams);
    return signedIn(work);
  });
const connect = () =>
  signedIn(() => {
    transport = new StreamableHTTPClientTransport(new URL(ADDRESS), { authProvider });
    return client.connect(transport);
  });
await connect();
const { tools } = await client.listTools();
const answer = await client.callTool(WEEK);
// end
await done(tools, answer, (tool) => signedIn(() => client.callTool(tool)));
