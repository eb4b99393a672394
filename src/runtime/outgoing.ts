import type { LookupAddress } from 'node:dns';
import {
  request as requestByHttp,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as requestByHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { USER_AGENT } from '../config/version.js';

/** Finds all addresses of a name. */
export type LookUp = (name: string) => Promise<readonly LookupAddress[]>;

/** Makes a look-up that asks once for all who need the same name meanwhile. */
export function shared(lookUp: LookUp): LookUp {
  const lookingUp = new Map<string, ReturnType<LookUp>>();
  return (name) => {
    const found = lookingUp.get(name) ?? lookUp(name).finally(() => lookingUp.delete(name));
    lookingUp.set(name, found);
    return found;
  };
}

/**
 * Sends a request, by http or https; redirects are not followed.
 *
 * @param lookUp for the name in the URL; an address is not looked up
 * @returns the request, and the response up to its body, which is for the caller to read
 * @throws Error where there is no response
 */
export function send(
  url: URL,
  lookUp: LookUp,
  { headers, ...options }: RequestOptions & { readonly headers: Readonly<Record<string, string>> },
  body?: string | Buffer,
): Promise<{ asked: ClientRequest; response: IncomingMessage }> {
  const lookup = callbackify((name: string, _options: object) => lookUp(name)) as LookupFunction;
  const request = url.protocol === 'https:' ? requestByHttps : requestByHttp;
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...options, headers: { 'User-Agent': USER_AGENT, ...headers }, lookup });
    asked.on('error', reject);
    asked.on('response', (response) => {
      response.on('error', () => undefined); // whoever reads on has another listener for it
      resolve({ asked, response });
    });
    asked.end(body);
  });
}
