import { createHmac, randomInt } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Secrets } from '../../config/config.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 12;
/** 62^43 > 2^256. */
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;

/** One expression that finds a leaked key in any text. */
export const API_KEY_PATTERN = /\bpua_(live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})\b/;
const WHOLE = new RegExp(`^${API_KEY_PATTERN.source}$`);

export type KeyEnvironment = 'live' | 'test';

export interface ParsedKey {
  readonly id: string;
  readonly environment: KeyEnvironment;
}

/** A new key: `pua_<live|test>_<id>_<secret><checksum>`. */
export function makeKey(environment: KeyEnvironment): { key: string; id: string } {
  const id = randomText(ID_LENGTH);
  const body = `pua_${environment}_${id}_${randomText(SECRET_LENGTH)}`;
  return { key: body + checksum(body), id };
}

/** @returns undefined where the text is no key or its checksum is wrong: it was never issued, no look-up is needed */
export function parseKey(text: string): ParsedKey | undefined {
  const match = text.length < 100 ? WHOLE.exec(text) : null;
  if (!match || checksum(text.slice(0, -CHECKSUM_LENGTH)) !== match[4]) return undefined;
  return { environment: match[1] as KeyEnvironment, id: match[2]! };
}

/** A pepper, and the four bytes by which a stored hash names it. */
export interface Pepper {
  readonly id: Buffer;
  readonly key: KeyObject;
}

/** The current pepper first. */
export function peppersOf(secrets: Secrets): readonly Pepper[] {
  const ids = secrets.derive('api-key-pepper-id');
  return secrets.derive('api-key-pepper').map((key, i) => ({ key, id: ids[i]!.export().subarray(0, 4) }));
}

/** A key has 256 random bits, so one HMAC is as good as a slow hash, and 25,000 times faster. */
export function hashKey(key: string, pepper: Pepper): Buffer {
  return createHmac('sha256', pepper.key).update(key).digest();
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = ALPHABET[rest % 62]! + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

function randomText(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(62)]).join('');
}
