import { readFileSync } from 'node:fs';
import { sha256 } from '../../crypto/digests.js';
import { OperatorError } from '../../values/operator-error.js';
import { isUsable, LONGEST_PASSWORD } from './passwords.js';

const SHORTEST = 10;

/** A password that is the username plus fewer characters than this is refused. */
const BESIDE_USERNAME = 4;

/** Why a new password is refused. */
export type PasswordFault = 'length' | 'characters' | 'common' | 'username';

/** Hexadecimal digits kept of each SHA-256: with 2,312 entries, one other password in 10^11 is mistaken for one of them. */
const DIGITS = 12;

let common: ReadonlySet<string> | undefined;

/**
 * Checks a new password (NIST SP 800-63B-4 §3.1.1.2): 10 to 128 characters (code points of its NFKC form), not
 * one of the 100,000 most common, ignoring case, and not the member's own username. No particular kinds of characters are required.
 *
 * @returns undefined if it is acceptable
 */
export function passwordFault(password: string, username: string): PasswordFault | undefined {
  const normal = password.normalize('NFKC');
  if (!isUsable(normal)) return 'characters';
  const { length } = [...normal];
  if (length < SHORTEST || length > LONGEST_PASSWORD) return 'length';
  const [folded, name] = [normal.toLowerCase(), username.normalize('NFKC').toLowerCase()];
  if (folded.includes(name) && folded.length - name.length < BESIDE_USERNAME) return 'username';
  // The file omits those that are too short anyway (bin/common-passwords.mjs).
  common ??= new Set(readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8').split('\n'));
  return common.has(sha256(folded, 'hex').slice(0, DIGITS)) ? 'common' : undefined;
}

const WORDS: Readonly<Record<PasswordFault, string>> = {
  length: `The password must have ${SHORTEST} to ${LONGEST_PASSWORD} characters`,
  characters: 'The password must not contain U+0000 or half of a surrogate pair',
  common: 'The password is one of the 100,000 that most people have: choose another',
  username: 'The password must not be the username',
};

/** Like {@link passwordFault}, for an admin. @throws OperatorError if it is not allowed */
export function checkPassword(password: string, username: string): void {
  const fault = passwordFault(password, username);
  if (fault === undefined) return;
  const length = fault === 'length' ? `, it has ${[...password.normalize('NFKC')].length}` : '';
  throw new OperatorError(`${WORDS[fault]}${length}`);
}
