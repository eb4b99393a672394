import { randomInt } from 'node:crypto';

/** Alphabet of secrets, with 5.95 bits per character. */
export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export { randomBytes, randomUUID } from 'node:crypto';

/** Makes a random text, each character drawn uniformly from the alphabet. */
export function randomText(length: number, alphabet: string): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}
