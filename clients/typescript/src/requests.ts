import { ApiError, secondsOf } from './problem.js';
import type { Problem } from './schema.js';

/**
 * Returns a request's headers with the credentials. The client calls it with `renew` if the API rejected the previous headers, and sends
 * different headers in a second attempt.
 */
export interface Credentials {
  headers(renew: boolean): Promise<Record<string, string>>;
}

/** The key of a partner's backend. Keys are for servers: the API rejects a key from a page and records it as exposed. */
export function apiKey(key: string): Credentials {
  return { headers: async () => ({ 'X-API-Key': key }) };
}

/** A token that is managed elsewhere: `token` returns the current token, or a new one if `renew` is true. */
export function bearer(token: string | ((renew: boolean) => Promise<string>)): Credentials {
  return {
    headers: async (renew) => ({
      Authorization: `Bearer ${typeof token === 'string' ? token : await token(renew)}`,
    }),
  };
}

export interface RequestSettings {
  /** URL of the server, without a path. */
  readonly baseUrl: string | URL;
  readonly credentials: Credentials;
  /** Maximum number of retries: after 429 or 503, if a call did not arrive, and after 502 or 504 if it only reads. Default 2. */
  readonly retries?: number;
  /** The longest wait between two attempts, in ms: if a longer wait is necessary, the call fails with the response. Default 10,000. */
  readonly longestWaitMs?: number;
  /** Timeout of one attempt, in ms. Default 30,000. */
  readonly timeoutMs?: number;
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

interface Sent extends CallOptions {
  readonly method?: 'PUT';
  readonly body?: unknown;
  readonly ifMatch?: string;
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** A response and its ETag. */
export interface Found<T> {
  readonly value: T;
  readonly etag: string | null;
}

const CACHED = 100;
/** The server is temporarily overloaded. */
const LATER = [429, 503];

/** Whether a proxy responded because the server did not: the server may have executed the call. */
const isGateway = ({ status }: Response) => status === 502 || status === 504;

/** Sends calls with one credential. Caches responses with their ETag, so that the server does not resend unchanged ones. */
export class Requests {
  readonly #settings: RequestSettings;
  readonly #known = new Map<string, Found<unknown>>();

  constructor(settings: RequestSettings) {
    this.#settings = settings;
  }

  /** @throws ApiError if the API rejects the request; the error of `fetch` if there is no response or `signal` was aborted */
  async call<T>(path: string, query: Query = {}, sent: Sent = {}): Promise<Found<T>> {
    const url = urlOf(this.#settings.baseUrl, path, query);
    const { retries = 2, longestWaitMs = 10_000 } = this.#settings;
    let credentials: Record<string, string> | undefined;
    let renewed = false;
    for (let tries = 0; ; tries++) {
      let response: Response;
      try {
        credentials ??= await this.#settings.credentials.headers(false);
        response = await this.#send(url, sent, credentials);
      } catch (error) {
        if (sent.signal?.aborted || tries >= retries) throw error;
        await wait(2 ** tries * 250, sent.signal);
        continue;
      }
      if (response.status === 304) return this.#known.get(url) as Found<T>;
      if (response.ok) return this.#keep<T>(url, response, sent.method === undefined);
      const refused = new ApiError(response, problemOf(await response.text()));
      if (response.status === 401 && !renewed) {
        const others = await this.#settings.credentials.headers(true);
        // A rejected credential is never sent again.
        if (JSON.stringify(others) === JSON.stringify(credentials)) throw refused;
        credentials = others;
        renewed = true;
        tries--;
        continue;
      }
      const waitMs = 1_000 * (secondsOf(response) ?? 2 ** tries);
      const again = LATER.includes(response.status) || (sent.method === undefined && isGateway(response));
      if (!again || tries >= retries || waitMs > longestWaitMs) throw refused;
      // Random, so that clients rejected together do not retry together.
      await wait(waitMs * (1 + Math.random() / 4), sent.signal);
    }
  }

  async #send(
    url: string,
    { method, body, ifMatch, signal }: Sent,
    credentials: Record<string, string>,
  ): Promise<Response> {
    const { timeoutMs = 30_000, fetch: send = fetch } = this.#settings;
    const known = method === undefined ? this.#known.get(url)?.etag : undefined;
    const timeout = AbortSignal.timeout(timeoutMs);
    return send(url, {
      method: method ?? 'GET',
      headers: {
        Accept: 'application/json',
        ...credentials,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(ifMatch === undefined ? {} : { 'If-Match': ifMatch }),
        ...(known ? { 'If-None-Match': known } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: 'no-store', // this class caches responses, for this credential only
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  }

  async #keep<T>(url: string, response: Response, readable: boolean): Promise<Found<T>> {
    const value = parsed(await response.text());
    if (value === undefined) throw new ApiError(response, undefined);
    const found: Found<T> = { value: value as T, etag: response.headers.get('etag') };
    if (!readable || found.etag === null) return found;
    this.#known.delete(url);
    this.#known.set(url, found);
    if (this.#known.size > CACHED) this.#known.delete(this.#known.keys().next().value as string);
    return found;
  }
}

function urlOf(baseUrl: string | URL, path: string, query: Query): string {
  const url = new URL(`/api/public${path}`, baseUrl);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    url.searchParams.set(name, Array.isArray(value) ? value.join(',') : String(value));
  }
  return url.href;
}

/** Parses JSON. Returns undefined for other text, such as a proxy's page. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problemOf(text: string): Problem | undefined {
  const body = parsed(text);
  return typeof body === 'object' && body !== null && 'code' in body ? (body as Problem) : undefined;
}

function wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
