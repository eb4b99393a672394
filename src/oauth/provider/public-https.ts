import { lookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { request } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { Injectable } from '@nestjs/common';
import { isPublicAddress } from '../../values/public-address.js';

/** For all of it: look-up, connection, answer. */
const LONGEST_MS = 2_500;
const MOST_BYTES = 16_384;

/**
 * Reads a document from the internet whose address a stranger wrote, and nothing from anywhere else: https alone, addresses of the
 * internet alone, judged as they are connected to (so that no name can lead elsewhere between a check and the connection), no
 * redirect, no proxy, no cookie, bounded in time and size.
 */
@Injectable()
export class PublicHttps {
  /** Which addresses are connected to. */
  isAllowed: (address: string) => boolean = isPublicAddress;

  /**
   * @param url https
   * @throws Error where it cannot be had
   */
  async readJson(url: URL): Promise<unknown> {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    // An address that stands in the URL itself is not looked up.
    if (url.protocol !== 'https:' || (isIP(host) !== 0 && !this.isAllowed(host)))
      throw new Error('the address is not one of the internet');
    const text = await this.#read(url);
    return JSON.parse(text) as unknown;
  }

  #read(url: URL): Promise<string> {
    return new Promise((resolve, reject) => {
      const asked = request(url, {
        agent: false, // a connection of its own: none is kept that was judged for another name
        lookup: this.#lookup,
        signal: AbortSignal.timeout(LONGEST_MS),
        headers: { Accept: 'application/json' },
        maxHeaderSize: MOST_BYTES,
      });
      asked.on('error', reject);
      asked.on('response', (response) => {
        const stop = (why: string) => asked.destroy(new Error(why));
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
        response.on('error', reject);
        response.on('end', () => resolve(Buffer.concat(chunks).toString()));
      });
      asked.end();
    });
  }

  /** As `net` looks up a name to connect to it: where one of its addresses is not the internet's, none is. */
  readonly #lookup: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      const first = error ? undefined : found[0];
      if (!first || !found.every(({ address }) => this.isAllowed(address))) {
        callback(error ?? new Error('the address is not one of the internet'), '', 0);
        return;
      }
      if (options.all) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}
