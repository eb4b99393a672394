import { crc32 } from 'node:zlib';
import { BASE62, randomText } from '../../crypto/random.js';

const ID_LENGTH = 12;
/** Length of a secret: 62^43 > 2^256. */
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;

export const API_KEY_PATTERN = /\bpua_(live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})\b/;
const WHOLE = new RegExp(`^${API_KEY_PATTERN.source}$`);

export type KeyEnvironment = 'live' | 'test';

/** Makes a key: `pua_<live|test>_<id>_<secret><checksum>`. */
export function makeKey(environment: KeyEnvironment): { key: string; id: string } {
  const id = randomText(ID_LENGTH, BASE62);
  const body = `pua_${environment}_${id}_${randomText(SECRET_LENGTH, BASE62)}`;
  return { key: body + checksum(body), id };
}

/** Parses a key. @returns undefined if it is malformed or its checksum is wrong */
export function parseKey(text: string): { id: string; environment: KeyEnvironment } | undefined {
  const match = text.length < 100 ? WHOLE.exec(text) : null;
  if (!match || checksum(text.slice(0, -CHECKSUM_LENGTH)) !== match[4]) return undefined;
  return { environment: match[1] as KeyEnvironment, id: match[2]! };
}

/** Finds the id of the key that a text names. The key may be incomplete, so the id proves nothing. */
export function namedKeyId(text: string): string | undefined {
  return /\bpua_(?:live|test)_([0-9A-Za-z]{12})(?![0-9A-Za-z])/.exec(text)?.[1];
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = BASE62[rest % 62]! + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
