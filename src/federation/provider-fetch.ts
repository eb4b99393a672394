import { lookup } from 'node:dns/promises';
import { buffer } from 'node:stream/consumers';
import type { CustomFetchOptions } from 'openid-client';
import { send, shared, type Lookup } from '../runtime/outgoing.js';

export type ProviderFetch = (url: string, options: RequestInit | CustomFetchOptions) => Promise<Response>;

/** A `fetch` that follows no redirects. Looks up one host name at a time, since the system's lookup blocks one of libuv's four threads. */
export function providerFetch(lookUp: Lookup = (name) => lookup(name, { all: true })): ProviderFetch {
  let last: Promise<unknown> = Promise.resolve();
  const lookUpInTurn = shared((name) => {
    const found = last.then(() => lookUp(name));
    last = found.catch(() => undefined);
    return found;
  });
  return async (url, { signal, ...rest }) => {
    const { method, headers, body } = new Request(url, rest as RequestInit);
    const options = { method, headers: Object.fromEntries(headers), ...(signal ? { signal } : {}) };
    try {
      const sent = body ? await buffer(body) : undefined;
      const { response } = await send(new URL(url), lookUpInTurn, options, sent);
      const received = await buffer(response);
      return new Response(received.length > 0 ? new Uint8Array(received) : null, {
        status: response.statusCode!,
        headers: Object.entries(response.headersDistinct).flatMap(([name, values]) =>
          values!.map((value): [string, string] => [name, value]),
        ),
      });
    } catch (cause) {
      throw new TypeError('fetch failed', { cause });
    }
  };
}
