import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { request as requestByHttp, type IncomingMessage } from 'node:http';
import { request as requestByHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { callbackify } from 'node:util';
import type { CustomFetchOptions } from 'openid-client';

/** As libraries take it. */
export type ProviderFetch = (url: string, options: RequestInit | CustomFetchOptions) => Promise<Response>;

/**
 * Makes a `fetch` for the provider, which does not follow redirects. The provider's name may be in the system's list of hosts, so the
 * system looks it up, and holds one of libuv's four threads until a name server answers, even if the request is aborted. Therefore it
 * looks up one name at a time, for all requests that need it, or the database could not be connected to meanwhile.
 *
 * @param lookUp the system's look-up
 */
export function providerFetch(
  lookUp: (name: string) => Promise<LookupAddress[]> = (name) => lookup(name, { all: true }),
): ProviderFetch {
  const lookingUp = new Map<string, Promise<LookupAddress[]>>();
  let last: Promise<unknown> = Promise.resolve();
  const find = (name: string, _options: object) => {
    let found = lookingUp.get(name);
    if (!found) {
      found = last.then(() => lookUp(name)).finally(() => lookingUp.delete(name));
      last = found.catch(() => undefined);
      lookingUp.set(name, found);
    }
    return found;
  };
  const sharedLookUp = callbackify(find) as LookupFunction;
  return async (url, { signal, ...rest }) => {
    const { method, headers, body } = new Request(url, rest as RequestInit);
    const sent = body && (await buffer(body));
    const ask = url.startsWith('https:') ? requestByHttps : requestByHttp;
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        ask(url, {
          method,
          headers: Object.fromEntries(headers),
          lookup: sharedLookUp,
          ...(signal ? { signal } : {}),
        })
          .on('error', reject)
          .on('response', resolve)
          .end(sent);
      });
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
