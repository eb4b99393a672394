import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { BrowserCookie } from './cookies.js';
import { Config } from '../../config/config.js';
import { Hmac } from '../../crypto/hmac.js';
import { randomBytes } from '../../crypto/random.js';

/**
 * Our forms carry a token that only our pages can have made, and only for this browser (signed double submit): the
 * browser keeps a random id in a cookie that no script reads, the form its HMAC.
 */
@Injectable()
export class Csrf {
  readonly #hmac: Hmac;
  readonly #origin: string;
  readonly #cookie: BrowserCookie;
  /** Ids issued in responses that are still being written, for a second form on the same page. */
  readonly #given = new WeakMap<ServerResponse, string>();

  constructor(config: Config) {
    this.#hmac = new Hmac(config.secrets, 'csrf');
    this.#origin = config.publicUrl;
    this.#cookie = new BrowserCookie(config, 'pua_csrf', '__Host-');
  }

  /** Makes the token for a form in this response, and sets the cookie if the browser has none. */
  token(request: IncomingMessage, response: ServerResponse): string {
    let id = this.browserOf(request) ?? this.#given.get(response);
    if (id === undefined) {
      id = randomBytes(32).toString('base64url');
      this.#given.set(response, id);
      this.#cookie.set(response, id);
    }
    return this.#hmac.of(id).toString('base64url');
  }

  /**
   * Tells whether the form came from one of our pages. `Origin: null` is what Chrome sends under `Referrer-Policy: no-referrer`; with
   * a valid token, and unless Sec-Fetch-Site contradicts it, that is accepted.
   */
  verify(request: IncomingMessage, submitted: unknown): boolean {
    const { origin, 'sec-fetch-site': site } = request.headers;
    if (origin !== undefined && origin !== 'null' && origin !== this.#origin) return false;
    if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
    const id = this.browserOf(request);
    if (id === undefined || typeof submitted !== 'string') return false;
    return this.#hmac.verify(Buffer.from(submitted, 'base64url'), id);
  }

  /** Identifies the browser by the secret of its cookie. @returns undefined if it has none */
  browserOf(request: IncomingMessage): string | undefined {
    return this.#cookie.valuesIn(request).find((id) => /^[\w-]{43}$/.test(id));
  }
}
