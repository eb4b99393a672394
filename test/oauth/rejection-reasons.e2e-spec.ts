import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  COMPOSED_TEXTS,
  type RejectionReason,
} from '../../src/authorization-server/reasons/rejection-reasons.js';
import { Logger } from '../../src/runtime/logger.js';
import { basic, clientWithKey, clientWithSecret } from '../support/client-kinds.js';
import { OauthTest, REDIRECT_URI, type Browser, type FormPage } from '../support/oauth.js';
import { startWithUpstream, type UpstreamServer } from '../support/upstream.js';

let oauth: OauthTest;
let withUpstream: { oauth: OauthTest; upstream: UpstreamServer };
let clientId: string;
beforeAll(async () => {
  // No sweep: it would delete an expired grant, whose reason is then another.
  oauth = await OauthTest.start({ trustProxy: 1, sweepIntervalSeconds: 86_400 });
  withUpstream = await startWithUpstream({}, { trustProxy: 1, rateLimits: { read: 0, write: 0, auth: 1 } });
  clientId = await oauth.client();
});
afterAll(async () => {
  await oauth.close();
  await withUpstream.oauth.close();
});

afterEach(() => void jest.restoreAllMocks());

/** Sends one test's requests from a separate address: the server limits the records per address. */
class Caller {
  static #count = 0;
  readonly id = `reason-${++Caller.#count}`;
  readonly headers = { 'X-Request-Id': this.id, 'X-Forwarded-For': `192.0.2.${Caller.#count}` };
  readonly browser: Browser;

  readonly #info: jest.Spied<Logger['info']>;
  readonly #error: jest.Spied<Logger['error']>;

  constructor(readonly server = oauth) {
    const logger = server.api.app.get(Logger);
    this.#info = jest.spyOn(logger, 'info');
    this.#error = jest.spyOn(logger, 'error');
    this.browser = server.browser();
    Object.assign(this.browser.headers, this.headers);
  }

  post(path: string, form: Record<string, string>, headers: Record<string, string> = {}) {
    return this.server.post(path, form, { ...this.headers, ...headers });
  }

  token(form: Record<string, string>, headers?: Record<string, string>) {
    return this.post('/oauth/token', form, headers);
  }

  refresh(refreshToken: string, form: Record<string, string> = {}) {
    const sent = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken };
    return this.token({ ...sent, ...form });
  }

  authorize(parameters: Record<string, string | undefined> = {}) {
    return this.browser.open(oauth.request(clientId, parameters).url);
  }

  open(path: string, query: Record<string, string> = {}) {
    return this.browser.open(`${path}?${new URLSearchParams(query)}`);
  }

  /** The recorded and logged reasons of the caller's requests. */
  async reasons(): Promise<string[]> {
    const rows = await this.server.dataSource.query<{ reason: string }[]>(
      `SELECT reason FROM oauth_refusals WHERE error_id = $1
       UNION SELECT details->>'reason' FROM auth_events WHERE error_id = $1 AND type LIKE '%refused'`,
      [this.id],
    );
    const logged = [...this.#info.mock.calls, ...this.#error.mock.calls]
      .map(([line]) => line as { request_id?: string; reason?: string })
      .filter(({ request_id: id, reason }) => id === this.id && reason !== undefined);
    return [...new Set([...rows, ...logged].map(({ reason }) => reason!))];
  }
}

type Provocation = (caller: Caller) => Promise<unknown>;

const redeem = async (caller: Caller, changed: Record<string, string> = {}) => {
  const { username } = await oauth.member();
  return caller.token({ ...(await oauth.code(clientId, username)), ...changed });
};
const tokens = async () => oauth.tokens(clientId, (await oauth.member()).username);
const query = (text: string, values?: unknown[]) => oauth.query(text, values);
const wrongToken = { grant_type: 'refresh_token', refresh_token: 'x' };
const wrongSecret = (id: string) => basic(id, `pua_secret_${'x'.repeat(43)}`);
const fapiClient = () => clientWithKey(oauth, { profile: 'fapi2', allowed_origins: [] });

/** Begins a sign-in with the external identity provider. */
async function upstreamSignIn({ browser }: Caller): Promise<URL> {
  return withUpstream.upstream.answerTo(browser, '/account/apps');
}

/** Reasons that only the second server can cause: it has an external identity provider and a limit. */
const OF_UPSTREAM: readonly string[] = [
  'unknown_member',
  'upstream_away',
  'upstream_refused',
  'upstream_wrong',
  'too_many_requests',
];

const OF_REASONS: Readonly<Record<RejectionReason, Provocation>> = {
  unknown_client: (caller) => caller.authorize({ client_id: 'nobody' }),
  unregistered_redirect_uri: (caller) => caller.authorize({ redirect_uri: 'https://evil.example/' }),
  unregistered_post_logout_redirect_uri: (caller) =>
    caller.open('/oauth/logout', { client_id: clientId, post_logout_redirect_uri: 'https://evil.example/' }),
  origin_not_allowed: (caller) => caller.token({ client_id: clientId }, { Origin: 'https://evil.example' }),
  code_not_found: (caller) => redeem(caller, { code: 'x'.repeat(43) }),
  code_used: async (caller) => {
    const form = await oauth.code(clientId, (await oauth.member()).username);
    await oauth.token(form);
    await caller.token(form);
  },
  refresh_token_not_found: (caller) => caller.refresh('x'.repeat(43)),
  refresh_token_used: async (caller) => {
    const { refresh_token: token } = await tokens();
    await oauth.refresh(clientId, token);
    await oauth.age('oauth_tokens', 11);
    await caller.refresh(token);
  },
  token_used_meanwhile: async (caller) => {
    const { refresh_token: token } = await tokens();
    await oauth.refresh(clientId, token);
    await caller.refresh(token, { scope: 'profile:read' });
  },
  other_redirect_uri: (caller) => redeem(caller, { redirect_uri: `${REDIRECT_URI}/other` }),
  other_client: async (caller) => redeem(caller, { client_id: await oauth.client() }),
  access_ended: async (caller) => {
    const { id, username } = await oauth.member();
    const { refresh_token: token } = await oauth.tokens(clientId, username);
    await query('UPDATE oauth_grants SET expires_at = now() WHERE user_id = $1', [id]);
    await caller.refresh(token);
  },
  wrong_code_verifier: (caller) => redeem(caller, { code_verifier: 'x'.repeat(43) }),
  no_pkce: (caller) => caller.authorize({ code_challenge: undefined, code_challenge_method: undefined }),
  proof_used: async (caller) => {
    const { assertion } = await clientWithKey(oauth);
    const form = { ...(await assertion()), ...wrongToken };
    await oauth.token(form);
    await caller.token(form);
  },
  profile_rule: async (caller) => caller.authorize({ client_id: (await fapiClient()).id }),
  bad_dpop_proof: (caller) => caller.token({ client_id: clientId, ...wrongToken }, { DPoP: 'x' }),
  request_uri: (caller) => caller.authorize({ request_uri: 'urn:ietf:params:oauth:request_uri:nothing' }),
  bad_id_token_hint: (caller) => caller.authorize({ id_token_hint: 'nonsense' }),
  sign_in_expired: (caller) => caller.open(`/interaction/${'x'.repeat(21)}`),
  foreign_form: async (caller) => {
    await oauth.code(clientId, (await oauth.member()).username, {}, caller.browser);
    const page = (await caller.open('/oauth/logout')) as FormPage;
    await caller.browser.submit(page, { xsrf: 'another', csrf: 'another', logout: 'yes' });
  },
  member_declined: async (caller) => {
    const { username } = await oauth.member();
    await caller.browser.authorize(oauth.request(clientId).url, { username, deny: true });
  },
  interaction_needed: (caller) => caller.authorize({ prompt: 'none' }),
  class_not_reached: async (caller) => {
    const { username } = await oauth.member();
    const claims = JSON.stringify({ id_token: { acr: { essential: true, value: 'phrh' } } });
    await oauth.code(clientId, username, {}, caller.browser);
    await caller.authorize({ claims });
  },
  secret_in_url: (caller) => caller.authorize({ client_secret: 'x' }),
  wrong_client_secret: async (caller) => {
    const { id } = await clientWithSecret(oauth);
    await caller.token(wrongToken, wrongSecret(id));
  },
  client_secret_expired: async (caller) => {
    const { id, secret } = await clientWithSecret(oauth);
    await query('UPDATE oauth_client_secrets SET expires_at = now() WHERE client_id = $1', [id]);
    await caller.token(wrongToken, basic(id, secret));
  },
  too_many_wrong_secrets: async (caller) => {
    const { id } = await clientWithSecret(oauth);
    for (let i = 0; i < 10; i++)
      await caller.token(wrongToken, { ...wrongSecret(id), 'X-Request-Id': `${caller.id}-${i}` });
    await caller.token(wrongToken, wrongSecret(id));
  },
  missing_parameter: (caller) => caller.token({ grant_type: 'authorization_code', client_id: clientId }),
  repeated_parameter: (caller) => {
    const { url } = oauth.request(clientId, { state: 'a' });
    url.searchParams.append('state', 'b');
    return caller.browser.open(url);
  },
  bad_client_authentication: (caller) =>
    caller.token({ client_id: clientId, ...wrongToken }, basic(clientId, 'x')),
  scope: (caller) => caller.authorize({ scope: 'nonsense' }),
  resource: (caller) => caller.authorize({ resource: 'https://evil.example/' }),
  unsupported: (caller) => caller.authorize({ response_type: 'token' }),
  unknown_member: async (caller) => {
    withUpstream.upstream.account = { sub: 'nobody-here' };
    await caller.browser.open(await upstreamSignIn(caller));
  },
  upstream_away: async (caller) => {
    const back = await upstreamSignIn(caller);
    withUpstream.upstream.faults = { away: /^\/token$/ };
    await caller.browser.open(back);
  },
  upstream_refused: async (caller) => {
    const error = 'temporarily_unavailable';
    withUpstream.upstream.decision = { error, error_description: error };
    await caller.browser.open(await upstreamSignIn(caller));
  },
  upstream_wrong: async (caller) => {
    const back = await upstreamSignIn(caller);
    withUpstream.upstream.faults = { claims: (claims) => ({ ...claims, nonce: 'another' }) };
    await caller.browser.open(back);
  },
  too_many_requests: async (caller) => {
    let page: FormPage;
    do page = (await caller.open('/oauth/logout/success')) as FormPage;
    while (page.status !== 429);
  },
  malformed_request: (caller) => caller.authorize({ claims: 'xsrf' }),
  server_error: async (caller) => {
    await query(`CREATE FUNCTION refuse_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no state is stored'; END $$`);
    await query(`CREATE TRIGGER refuse_states BEFORE INSERT ON oauth_state FOR EACH ROW
  WHEN (NEW.model = 'Interaction') EXECUTE FUNCTION refuse_states()`);
    try {
      await caller.authorize();
    } finally {
      await query('DROP FUNCTION refuse_states CASCADE');
    }
  },
  other: async (caller) => {
    const id = await oauth.client();
    await query(`UPDATE oauth_clients SET client_uri = 'nonsense' WHERE id = $1`, [id]);
    await caller.authorize({ client_id: id });
  },
};

const OF_TEXTS: Readonly<Record<keyof typeof COMPOSED_TEXTS, Provocation>> = {
  'authorization code not found': OF_REASONS.code_not_found,
  'authorization code already consumed': OF_REASONS.code_used,
  'code_verifier must be a string with a minimum length of 43 characters': (caller) =>
    redeem(caller, { code_verifier: 'x' }),
  'code_verifier must be a string with a maximum length of 128 characters': (caller) =>
    redeem(caller, { code_verifier: 'x'.repeat(129) }),
  'code_verifier contains invalid characters': (caller) => redeem(caller, { code_verifier: '!'.repeat(43) }),
  'code_challenge must be a string with a minimum length of 43 characters': (caller) =>
    caller.authorize({ code_challenge: 'x' }),
  'code_challenge contains invalid characters': (caller) =>
    caller.authorize({ code_challenge: '!'.repeat(43) }),
  'client_assertion_type must have value urn:ietf:params:oauth:client-assertion-type:jwt-bearer': async (
    caller,
  ) => {
    const { assertion } = await clientWithKey(oauth);
    await caller.token({ ...(await assertion()), ...wrongToken, client_assertion_type: 'another' });
  },
};

describe('the recorded reason of a rejection', () => {
  it.each(['session', 'xsrf', 'client not found', '"DPoP"'])(
    'is malformed_request for the malformed claims %s',
    async (claims) => {
      const caller = new Caller();
      await caller.authorize({ claims });
      expect(await caller.reasons()).toEqual(['malformed_request']);
    },
  );

  it('is bad_id_token_hint for a malformed id_token_hint at sign-out', async () => {
    const caller = new Caller();
    await caller.open('/oauth/logout', { id_token_hint: 'x' });
    expect(await caller.reasons()).toEqual(['bad_id_token_hint']);
  });

  it('is bad_client_authentication for a malformed client_assertion', async () => {
    const caller = new Caller();
    const { assertion, id } = await clientWithKey(oauth);
    await caller.token({ ...(await assertion()), client_id: id, client_assertion: 'x.y.z', grant_type: 'x' });
    expect(await caller.reasons()).toEqual(['bad_client_authentication']);
  });

  it.each(Object.entries(OF_REASONS))('is %s', async (reason, provoke) => {
    const caller = new Caller(OF_UPSTREAM.includes(reason) ? withUpstream.oauth : oauth);
    Object.assign(withUpstream.upstream, { faults: {}, decision: {} });
    await provoke(caller);
    expect(await caller.reasons()).toEqual([reason]);
  });

  it.each(Object.entries(OF_TEXTS))('is the listed reason for the error text "%s"', async (text, provoke) => {
    const caller = new Caller();
    await provoke(caller);
    expect(await caller.reasons()).toEqual([COMPOSED_TEXTS[text as keyof typeof COMPOSED_TEXTS]]);
  });
});
