import type { Credentials } from './requests.js';

/** Where tokens and pending sign-ins are stored: `localStorage`, `sessionStorage`, or the app's own storage. */
export type TokenStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export interface SignInSettings {
  /** URL of the server, without a path. */
  readonly issuer: string | URL;
  readonly clientId: string;
  /** Must exactly match a registered redirect URI. */
  readonly redirectUri: string;
  readonly scope: string;
  /** Stores the tokens. Tabs that share a storage share the sign-in. Default `sessionStorage`: the sign-in ends with the tab. */
  readonly storage?: TokenStorage;
  /** Stores state and verifier of a pending sign-in, for this tab only. Default `sessionStorage`. */
  readonly begunStorage?: TokenStorage;
  readonly fetch?: typeof fetch;
}

/** An error from the authorization server (RFC 6749 §4.1.2.1, §5.2), or a response that belongs to no sign-in of this client. */
export class SignInError extends Error {
  override readonly name = 'SignInError';

  constructor(
    /** A code of the RFC, such as `access_denied`; `state_mismatch` if the response belongs to no sign-in of this client; `signed_out` if there are no tokens. */
    readonly code: string,
    description?: string | null,
  ) {
    super(description ?? code);
  }
}

interface Metadata {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly revocation_endpoint: string;
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly scope: string;
  /** ms since 1970 */
  readonly expires_at: number;
  /** ms since 1970; absent if the access has no end */
  readonly access_ends_at?: number;
}

/** The client refreshes a token this long before it expires. */
const EARLY_MS = 30_000;

/**
 * Signs a member in with an authorization code and PKCE (RFC 7636, RFC 9700), and refreshes the tokens. Among tabs that share a storage,
 * one refreshes at a time (Web Locks, if available), and the others use its result.
 */
export class SignIn implements Credentials {
  readonly #settings: SignInSettings;
  #metadata: Promise<Metadata> | undefined;
  #refreshing: Promise<Tokens> | undefined;

  constructor(settings: SignInSettings) {
    this.#settings = settings;
  }

  /**
   * Returns the sign-in URL for the member, and stores the input for {@link finish}.
   *
   * @param prompt `consent`: ask the member again, also for denied scopes
   */
  async begin(prompt?: 'consent' | 'login' | 'none'): Promise<URL> {
    const { clientId, redirectUri, scope } = this.#settings;
    const { authorization_endpoint, issuer } = await this.#discover();
    const [verifier, state] = [random(), random()];
    this.#begun.setItem(this.#name('begun'), JSON.stringify({ verifier, state, issuer }));
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
    const url = new URL(authorization_endpoint);
    url.search = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: redirectUri,
      scope,
      state,
      code_challenge: base64url(new Uint8Array(digest)),
      code_challenge_method: 'S256',
      ...(prompt ? { prompt } : {}),
    }).toString();
    return url;
  }

  /**
   * Exchanges the code in the URL with which the member returned.
   *
   * @param url the page's URL, with its query; remove the query from the address bar afterwards
   * @returns the granted scope, which may be less than requested
   * @throws SignInError
   */
  async finish(url: string | URL): Promise<string> {
    const answer = new URL(url).searchParams;
    const begun = JSON.parse(this.#begun.getItem(this.#name('begun')) ?? 'null') as Begun | null;
    this.#begun.removeItem(this.#name('begun'));
    // RFC 9207: the second check rejects another server's response.
    if (!begun || answer.get('state') !== begun.state || answer.get('iss') !== begun.issuer)
      throw new SignInError(
        'state_mismatch',
        'This response does not belong to a sign-in that started here.',
      );
    const error = answer.get('error');
    if (error !== null) throw new SignInError(error, answer.get('error_description'));
    const { scope } = await this.#ask({
      grant_type: 'authorization_code',
      code: answer.get('code') ?? '',
      code_verifier: begun.verifier,
      redirect_uri: this.#settings.redirectUri,
    });
    return scope;
  }

  get signedIn(): boolean {
    return this.#tokens !== undefined;
  }

  /** When the app's access ends; undefined if it has no end, or nobody is signed in. */
  get accessEndsAt(): Date | undefined {
    const endsAt = this.#tokens?.access_ends_at;
    return endsAt === undefined ? undefined : new Date(endsAt);
  }

  /**
   * Returns a token that is valid now.
   *
   * @param renew whether the API rejected the previous token
   * @throws SignInError `signed_out`: the member must sign in again; the message states when and why access ended
   */
  async accessToken(renew = false): Promise<string> {
    const tokens = this.#tokens;
    if (!tokens) throw new SignInError('signed_out');
    if (!renew && tokens.expires_at - EARLY_MS > Date.now()) return tokens.access_token;
    this.#refreshing ??= this.#alone((waited) => this.#refresh(tokens, waited)).finally(
      () => (this.#refreshing = undefined),
    );
    return (await this.#refreshing).access_token;
  }

  async headers(renew: boolean): Promise<Record<string, string>> {
    return { Authorization: `Bearer ${await this.accessToken(renew)}` };
  }

  /** Revokes the tokens at the server (RFC 7009) and deletes them here, even if the server could not be reached. */
  async signOut(): Promise<void> {
    const tokens = this.#tokens;
    this.#storage.removeItem(this.#name('tokens'));
    if (!tokens) return;
    const { revocation_endpoint } = await this.#discover();
    const token = tokens.refresh_token ?? tokens.access_token;
    await this.#fetch(revocation_endpoint, this.#form({ token }));
  }

  /**
   * @param used this tab's token: if another tab has refreshed it in the meantime, returns that tab's tokens
   * @param waited whether this tab waited for another tab, whose tokens may arrive just after that tab releases the lock
   */
  async #refresh(used: Tokens, waited: boolean): Promise<Tokens> {
    for (let i = 0; waited && i < 10 && this.#tokens?.access_token === used.access_token; i++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    const tokens = this.#tokens;
    if (!tokens) throw new SignInError('signed_out');
    if (tokens.access_token !== used.access_token) return tokens;
    if (tokens.refresh_token === undefined) {
      this.#storage.removeItem(this.#name('tokens'));
      throw new SignInError('signed_out', 'The sign-in has expired.');
    }
    try {
      return await this.#ask({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token });
    } catch (error) {
      if (!(error instanceof SignInError) || error.code !== 'invalid_grant') throw error;
      this.#storage.removeItem(this.#name('tokens'));
      throw new SignInError('signed_out', error.message);
    }
  }

  async #ask(parameters: Record<string, string>): Promise<Tokens> {
    const { token_endpoint } = await this.#discover();
    const response = await this.#fetch(token_endpoint, this.#form(parameters));
    const body = (await response.json().catch(() => ({}))) as Record<string, string>;
    const { access_token, refresh_token, expires_in, refresh_token_expires_in: lasts, scope } = body;
    if (!response.ok || access_token === undefined)
      throw new SignInError(
        body.error ?? `http_${response.status}`,
        body.error_description ?? `${token_endpoint} did not respond as an authorization server.`,
      );
    const tokens = {
      access_token,
      refresh_token,
      scope,
      expires_at: Date.now() + Number(expires_in) * 1_000,
      ...(lasts === undefined ? {} : { access_ends_at: Date.now() + Number(lasts) * 1_000 }),
    };
    this.#storage.setItem(this.#name('tokens'), JSON.stringify(tokens));
    return tokens as Tokens;
  }

  #form(parameters: Record<string, string>): RequestInit {
    return {
      method: 'POST',
      body: new URLSearchParams({ client_id: this.#settings.clientId, ...parameters }),
      signal: AbortSignal.timeout(30_000),
    };
  }

  /** Reads the server's metadata (RFC 8414) once, and again after a failure. */
  #discover(): Promise<Metadata> {
    const url = new URL('/.well-known/oauth-authorization-server', this.#settings.issuer);
    this.#metadata ??= this.#fetch(url).then(async (response) => {
      const metadata = (await response.json().catch(() => ({}))) as Partial<Metadata>;
      if (!response.ok || metadata.token_endpoint === undefined)
        throw new SignInError(
          `http_${response.status}`,
          `There is no metadata at ${url.href}: is issuer the URL of the API?`,
        );
      return metadata as Metadata;
    });
    this.#metadata.catch(() => (this.#metadata = undefined));
    return this.#metadata;
  }

  /** Runs `work` in one tab at a time; `waited`: whether another tab has just run the same work. */
  async #alone<T>(work: (waited: boolean) => Promise<T>): Promise<T> {
    const locks = (globalThis.navigator as Navigator | undefined)?.locks;
    if (!locks) return work(false);
    const name = this.#name('refresh');
    const atOnce = await locks.request(name, { ifAvailable: true }, async (lock) =>
      lock === null ? undefined : { done: await work(false) },
    );
    return atOnce === undefined ? locks.request(name, () => work(true)) : atOnce.done;
  }

  #fetch(url: string | URL, request?: RequestInit): Promise<Response> {
    const { fetch: send = fetch } = this.#settings; // called without `this`: otherwise, browsers reject the call
    return send(url, request);
  }

  get #storage(): TokenStorage {
    return this.#settings.storage ?? sessionStorage;
  }

  get #begun(): TokenStorage {
    return this.#settings.begunStorage ?? sessionStorage;
  }

  get #tokens(): Tokens | undefined {
    const kept = this.#storage.getItem(this.#name('tokens'));
    return kept === null ? undefined : (JSON.parse(kept) as Tokens);
  }

  #name(what: string): string {
    return `public-user-api:${this.#settings.clientId}:${what}`;
  }
}

interface Begun {
  readonly verifier: string;
  readonly state: string;
  readonly issuer: string;
}

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}
