import { lookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { request as requestByHttp } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as requestByHttps } from 'node:https';
import type { RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { Injectable } from '@nestjs/common';
import { isLoopbackAddress, isPublicAddress } from '../values/public-address.js';

/** For reading a document: look-up, connection and response together. */
const LONGEST_READ_MS = 2_500;
/** The longest response that is read. */
const MOST_BYTES = 16_384;

const NOT_PUBLIC = 'the address is not one of the internet';

/** What is sent, and where to. */
export interface Posting {
  /** https; http only to this machine, where `loopback` is true. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Aborts it at any stage. */
  readonly signal: AbortSignal;
  /** Whether receivers on this machine can be reached, too: for development. */
  readonly loopback: boolean;
}

/**
 * Connects to URLs that others chose, and only to the public internet: https only, public addresses only, checked at the moment of
 * connecting (so that no name can lead elsewhere between check and connection), no redirects, no proxy, no cookies, bounded in time and
 * size.
 */
@Injectable()
export class PublicHttps {
  /** Decides which addresses may be connected to. */
  isAllowed: (address: string) => boolean = isPublicAddress;
  /** Looks a name up, once for each connection. */
  lookUp: typeof lookup = lookup;

  /**
   * Reads a document.
   *
   * @param url https
   * @throws Error where it cannot be read
   */
  async readJson(url: URL): Promise<unknown> {
    const headers = { Accept: 'application/json' };
    const signal = AbortSignal.timeout(LONGEST_READ_MS);
    const { asked, response } = await this.#ask(url, { headers, signal }, false);
    const text = await new Promise<string>((resolve, reject) => {
      const stop = (why: string) => asked.destroy(new Error(why));
      asked.on('error', reject);
      response.on('error', reject);
      if (response.statusCode !== 200) {
        stop(`the answer is ${response.statusCode}`);
        return;
      }
      if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(response.headers['content-type'] ?? '')) {
        stop('the answer is not JSON');
        return;
      }
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        if ((size += chunk.length) > MOST_BYTES) stop(`the answer has more than ${MOST_BYTES} bytes`);
      });
      response.on('end', () => resolve(Buffer.concat(chunks).toString()));
    });
    return JSON.parse(text) as unknown;
  }

  /**
   * Sends a body. Only a little of the response is read, and nothing of it is kept.
   *
   * @returns the status of the response, whatever it is
   * @throws Error where there is no response
   */
  async post({ url, headers, body, signal, loopback }: Posting): Promise<number> {
    const { asked, response } = await this.#ask(url, { method: 'POST', headers, signal }, loopback, body);
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      if ((size += chunk.length) > MOST_BYTES) asked.destroy();
    });
    return response.statusCode!;
  }

  /** @returns the request, and the response up to its body, which is for the caller to read */
  #ask(
    url: URL,
    options: RequestOptions,
    loopback: boolean,
    body?: string,
  ): Promise<{ asked: ClientRequest; response: IncomingMessage }> {
    const isSecure = url.protocol === 'https:';
    const isAllowed = (address: string) =>
      (isSecure && this.isAllowed(address)) || (loopback && isLoopbackAddress(address));
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return new Promise((resolve, reject) => {
      // An address in the URL itself is not looked up.
      if ((!isSecure && !(loopback && url.protocol === 'http:')) || (isIP(host) !== 0 && !isAllowed(host)))
        throw new Error(NOT_PUBLIC);
      const asked = (isSecure ? requestByHttps : requestByHttp)(url, {
        ...options,
        agent: false, // a new connection: none may be reused that was checked for another name
        lookup: this.#lookUpAmong(isAllowed),
        maxHeaderSize: MOST_BYTES,
      });
      asked.on('error', reject);
      asked.on('response', (response) => {
        response.on('error', () => undefined); // whoever reads on has another listener for it
        resolve({ asked, response });
      });
      asked.end(body);
    });
  }

  /** A look-up for `net.connect`: where one of a name's addresses is not allowed, none is. */
  #lookUpAmong(isAllowed: (address: string) => boolean): LookupFunction {
    return (hostname, options, callback) => {
      this.lookUp(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
        const first = error ? undefined : found[0];
        if (!first || !found.every(({ address }) => isAllowed(address))) {
          callback(error ?? new Error(NOT_PUBLIC), '', 0);
          return;
        }
        if (options.all) callback(null, found);
        else callback(null, first.address, first.family);
      });
    };
  }
}
