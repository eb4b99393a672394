import { randomInt } from 'node:crypto';

export { randomBytes, randomUUID } from 'node:crypto';

/** Makes a text of so many characters, each drawn from the alphabet with the same chance. */
export function randomText(length: number, alphabet: string): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}
