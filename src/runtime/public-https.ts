import type { LookupAddress } from 'node:dns';
import { CANCELLED, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { isLoopbackAddress, isPublicAddress } from '../values/network.js';
import { send, shared, type Lookup } from './outgoing.js';

const MAX_LOOK_UP_MS = 2_000;
/** Time limit in ms for lookup, connection and response together. */
const MAX_READ_MS = 2_500;
const MAX_BYTES = 16_384;

export const NOT_PUBLIC = 'the address is not on the internet';
const NO_NAME_SERVER = `no name server responded within ${MAX_LOOK_UP_MS / 1000} s`;

const LOCALHOST: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

interface Posting {
  /** An https URL or, if `loopback` is true, an http URL to this host. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  /** Permits endpoints on this host, for development. */
  readonly loopback: boolean;
}

export interface PostResponse {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/**
 * Looks up an untrusted name by DNS only: getaddrinfo would block one of libuv's few threads.
 * @param servers default: the system's name servers @throws Error if it finds no address within 2 s
 */
export async function resolveAddresses(
  name: string,
  servers?: readonly string[],
): Promise<readonly LookupAddress[]> {
  if (/(^|\.)localhost\.?$/i.test(name)) return LOCALHOST; // never sent to a name server (RFC 6761 §6.3)
  const resolver = new Resolver({ timeout: MAX_LOOK_UP_MS / 4, tries: 3 });
  if (servers) resolver.setServers(servers);
  const timer = setTimeout(() => resolver.cancel(), MAX_LOOK_UP_MS);
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  clearTimeout(timer);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (found.length > 0) return found.map((address) => ({ address, family: isIP(address) }));
  const { reason } = answers[0] as { reason: NodeJS.ErrnoException };
  if (reason.code === CANCELLED) throw new Error(NO_NAME_SERVER);
  throw reason;
}

/** Sends requests to untrusted URLs: to public https servers or, with `loopback`, to this host. Does not follow redirects. */
@Injectable()
export class PublicHttps {
  isAllowed: (address: string) => boolean = isPublicAddress;
  lookUp: Lookup = resolveAddresses;
  timeLimit = (): AbortSignal => AbortSignal.timeout(MAX_READ_MS);
  readonly #lookUp = shared((name) => this.lookUp(name));

  /** Reads a JSON document. @param url https @throws Error if the response is late, not 200, not JSON or too large */
  async readJson(url: URL): Promise<unknown> {
    const headers = { Accept: 'application/json' };
    const signal = this.timeLimit();
    const { asked, response } = await this.#ask(url, { headers, signal }, false);
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      if (response.statusCode !== 200) throw new Error(`the response is ${response.statusCode}`);
      if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(response.headers['content-type'] ?? ''))
        throw new Error('the response is not JSON');
      for await (const chunk of response as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        if ((size += chunk.length) > MAX_BYTES)
          throw new Error(`the response has more than ${MAX_BYTES} bytes`);
      }
    } finally {
      asked.destroy();
    }
    return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
  }

  /** Sends a body. Reads only the response's status and headers, since its body could be endless. @throws Error if there is no response */
  async post({ url, headers, body, signal, loopback }: Posting): Promise<PostResponse> {
    const { asked, response } = await this.#ask(url, { method: 'POST', headers, signal }, loopback, body);
    asked.destroy();
    return { status: response.statusCode!, retryAfter: response.headers['retry-after'] };
  }

  /** @throws Error if the URL or any of its addresses is not allowed, or if no response arrives */
  async #ask(
    url: URL,
    options: Parameters<typeof send>[2],
    loopback: boolean,
    body?: string,
  ): ReturnType<typeof send> {
    const isSecure = url.protocol === 'https:';
    const isAllowed = (address: string) =>
      (isSecure && this.isAllowed(address)) || (loopback && isLoopbackAddress(address));
    const requireAllowed = (addresses: readonly string[]) => {
      if (!addresses.every(isAllowed)) throw new Error(NOT_PUBLIC);
    };
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if (!isSecure && !(loopback && url.protocol === 'http:')) throw new Error(NOT_PUBLIC);
    if (isIP(host) !== 0) requireAllowed([host]); // an address needs no lookup
    const lookUp: Lookup = async (name) => {
      const found = await this.#lookUp(name);
      requireAllowed(found.map(({ address }) => address));
      return found;
    };
    // Always opens a new connection: the address of an open one was checked for an earlier request.
    return send(url, lookUp, { ...options, agent: false, maxHeaderSize: MAX_BYTES }, body);
  }
}
