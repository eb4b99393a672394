import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { BrowserCookie } from './cookies.js';
import { Config } from '../../config/config.js';
import { Hmac } from '../../crypto/hmac.js';
import { randomBytes } from '../../crypto/random.js';

const LIFETIME_SECONDS = 180 * 24 * 3600;

/** How many members are remembered in one browser. */
const MOST_MEMBERS = 5;

const TIME_BYTES = 6;
const ID_BYTES = 16;
const MAC_BYTES = 32;

/**
 * Remembers a browser in which a member has signed in (a device cookie, OWASP: Slow Down Online Guessing Attacks with
 * Device Cookies). Attempts from it have an allowance of their own, so that nobody keeps the member out by guessing
 * elsewhere. It gives no access: the password is still required, and whoever steals the cookie has one allowance of guesses at
 * this one member. So it survives signing out and a change of the password, which it does not help to guess; whoever
 * changes the password because of an attack is the one who needs it.
 *
 * One cookie has an entry for each member, newest first, joined by dots: base64url of the time (6 bytes, seconds), a
 * random id (16) and HMAC-SHA-256 (32) of both with the member's id, which the cookie does not contain.
 */
@Injectable()
export class DeviceCookies {
  readonly #hmac: Hmac;
  readonly #cookie: BrowserCookie;

  constructor(config: Config) {
    this.#hmac = new Hmac(config.secrets, 'device-cookie');
    this.#cookie = new BrowserCookie(config, 'pua_device', '__Host-', LIFETIME_SECONDS);
  }

  /** @returns the id of this browser as one in which the member has signed in */
  find(request: IncomingMessage, userId: number): string | undefined {
    return entriesOf(this.#cookie.valuesIn(request)).find((entry) => this.#isOf(entry, userId))?.id;
  }

  /** Records that the member has just signed in with this browser. */
  issue(request: IncomingMessage, response: ServerResponse, userId: number): void {
    const others = entriesOf(this.#cookie.valuesIn(request)).filter((entry) => !this.#isOf(entry, userId));
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUIntBE(Math.floor(Date.now() / 1000), 0, TIME_BYTES);
    const signed = Buffer.concat([time, randomBytes(ID_BYTES)]);
    const own = Buffer.concat([signed, this.#hmac.of(signed, String(userId))]).toString('base64url');
    this.#cookie.set(response, [own, ...others.map(({ text }) => text)].slice(0, MOST_MEMBERS).join('.'));
  }

  #isOf({ signed, tag }: Entry, userId: number): boolean {
    return this.#hmac.verify(tag, signed, String(userId));
  }
}

type Entry = ReturnType<typeof entriesOf>[number];

/** Entries that have not expired; whose they are, and whether they are genuine, has not been checked yet. */
function entriesOf([value = '']: readonly string[]) {
  const oldest = Math.floor(Date.now() / 1000) - LIFETIME_SECONDS;
  return value.split('.', MOST_MEMBERS).flatMap((text) => {
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
