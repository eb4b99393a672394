import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.js';
import { Hmac } from '../crypto/hmac.js';
import { randomBytes } from '../crypto/random.js';
import { isOpaqueSecret } from '../values/secret-forms.js';

export class BrowserCookie {
  readonly #name: string;
  readonly #attributes: string;

  /** @param prefix of the name, with https only @param lifetimeSeconds default: until the browser closes */
  constructor(
    { publicUrl }: Config,
    name: string,
    prefix: '__Host-' | '__Secure-',
    private readonly lifetimeSeconds?: number,
  ) {
    const secure = publicUrl.startsWith('https:');
    this.#name = secure ? `${prefix}${name}` : name;
    this.#attributes = `HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  }

  /** Returns the unchecked values of all cookies with this name. */
  valuesIn(request: IncomingMessage): string[] {
    return (request.headers.cookie ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${this.#name}=`))
      .map((pair) => pair.slice(this.#name.length + 1));
  }

  set(response: ServerResponse, value: string, lifetimeSeconds = this.lifetimeSeconds): void {
    const lifetime = lifetimeSeconds === undefined ? '' : `Max-Age=${lifetimeSeconds}; `;
    response.appendHeader('Set-Cookie', `${this.#name}=${value}; Path=/; ${lifetime}${this.#attributes}`);
  }
}

/** CSRF protection by signed double submit: the form holds the HMAC of the random id in the cookie. */
@Injectable()
export class Csrf {
  readonly #hmac: Hmac;
  readonly #origin: string;
  readonly #cookie: BrowserCookie;
  /** New ids by response, so that all forms on a page use the same id. */
  readonly #given = new WeakMap<ServerResponse, string>();

  constructor(config: Config) {
    this.#hmac = new Hmac(config.secrets, 'csrf');
    this.#origin = config.publicUrl;
    this.#cookie = new BrowserCookie(config, 'pua_csrf', '__Host-');
  }

  /** Makes the form's token, and sets the cookie if the browser has none. */
  token(request: IncomingMessage, response: ServerResponse): string {
    let id = this.browserOf(request) ?? this.#given.get(response);
    if (id === undefined) {
      id = randomBytes(32).toString('base64url');
      this.#given.set(response, id);
      this.#cookie.set(response, id);
    }
    return this.#hmac.of(id).toString('base64url');
  }

  /** Tells whether the form came from one of our pages. Chrome omits their origin (`null`) under `Referrer-Policy: no-referrer`. */
  verify(request: IncomingMessage, submitted: unknown): boolean {
    const { origin, 'sec-fetch-site': site } = request.headers;
    if (origin !== undefined && origin !== 'null' && origin !== this.#origin) return false;
    if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
    const id = this.browserOf(request);
    if (id === undefined || typeof submitted !== 'string') return false;
    return this.#hmac.verify(Buffer.from(submitted, 'base64url'), id);
  }

  /** @returns the random id in the cookie; undefined if it is missing or malformed */
  browserOf(request: IncomingMessage): string | undefined {
    return this.#cookie.valuesIn(request).find(isOpaqueSecret);
  }
}

const LIFETIME_SECONDS = 180 * 24 * 3600;

const MAX_MEMBERS = 5;

const TIME_BYTES = 6;
const ID_BYTES = 16;
const MAC_BYTES = 32;

/**
 * Device cookies (OWASP: Slow Down Online Guessing Attacks with Device Cookies) give known browsers their own allowance of attempts. They
 * grant no access and survive sign-out and password changes. Per member: base64url of the time (6 bytes, seconds), a random id (16) and
 * an HMAC-SHA-256 (32) of time, random id and the member's id.
 */
@Injectable()
export class DeviceCookies {
  readonly #hmac: Hmac;
  readonly #cookie: BrowserCookie;

  constructor(config: Config) {
    this.#hmac = new Hmac(config.secrets, 'device-cookie');
    this.#cookie = new BrowserCookie(config, 'pua_device', '__Host-', LIFETIME_SECONDS);
  }

  /** @returns the id in the member's entry; undefined if this browser sent no valid entry */
  find(request: IncomingMessage, userId: number): string | undefined {
    return entriesOf(this.#cookie.valuesIn(request)).find((entry) => this.#isOf(entry, userId))?.id;
  }

  issue(request: IncomingMessage, response: ServerResponse, userId: number): void {
    const others = entriesOf(this.#cookie.valuesIn(request)).filter((entry) => !this.#isOf(entry, userId));
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUIntBE(Math.floor(Date.now() / 1000), 0, TIME_BYTES);
    const signed = Buffer.concat([time, randomBytes(ID_BYTES)]);
    const own = Buffer.concat([signed, this.#hmac.of(signed, String(userId))]).toString('base64url');
    this.#cookie.set(response, [own, ...others.map(({ text }) => text)].slice(0, MAX_MEMBERS).join('.'));
  }

  #isOf({ signed, tag }: Entry, userId: number): boolean {
    return this.#hmac.verify(tag, signed, String(userId));
  }
}

type Entry = ReturnType<typeof entriesOf>[number];

/** Finds well-formed entries that have not expired. The caller must check their HMACs. */
function entriesOf([value = '']: readonly string[]) {
  const oldest = Math.floor(Date.now() / 1000) - LIFETIME_SECONDS;
  return value.split('.', MAX_MEMBERS).flatMap((text) => {
    const bytes = Buffer.from(text, 'base64url');
    const isWhole =
      bytes.length === TIME_BYTES + ID_BYTES + MAC_BYTES && bytes.toString('base64url') === text;
    if (!isWhole || bytes.readUIntBE(0, TIME_BYTES) <= oldest) return [];
    return {
      text,
      signed: bytes.subarray(0, TIME_BYTES + ID_BYTES),
      id: bytes.toString('base64url', TIME_BYTES, TIME_BYTES + ID_BYTES),
      tag: bytes.subarray(TIME_BYTES + ID_BYTES),
    };
  });
}
