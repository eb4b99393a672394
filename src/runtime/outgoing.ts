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

export type Lookup = (name: string) => Promise<readonly LookupAddress[]>;

/** Wraps a lookup so that concurrent calls with the same name share one result. */
export function shared(lookUp: Lookup): Lookup {
  const lookingUp = new Map<string, ReturnType<Lookup>>();
  return (name) => {
    const found = lookingUp.get(name) ?? lookUp(name).finally(() => lookingUp.delete(name));
    lookingUp.set(name, found);
    return found;
  };
}

/** Sends a request without following redirects. @returns the request and the unread response @throws Error if no response arrives */
export function send(
  url: URL,
  lookUp: Lookup,
  { headers, ...options }: RequestOptions & { readonly headers: Readonly<Record<string, string>> },
  body?: string | Buffer,
): Promise<{ asked: ClientRequest; response: IncomingMessage }> {
  const lookup = callbackify((name: string, _options: object) => lookUp(name)) as LookupFunction;
  const request = url.protocol === 'https:' ? requestByHttps : requestByHttp;
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...options, headers: { 'User-Agent': USER_AGENT, ...headers }, lookup });
    asked.on('error', reject);
    asked.on('response', (response) => {
      response.on('error', () => undefined); // code that reads the response has its own listener
      resolve({ asked, response });
    });
    asked.end(body);
  });
}
