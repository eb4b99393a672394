import { Hmac } from '../crypto/hmac.js';
import type { Secrets } from '../crypto/secrets.js';
import { Problem } from './output/problems.js';

const MAC_BYTES = 16;

/** Cursors of answers: opaque to callers, signed, and good for what they are bound to alone (docs/api-contract.md §7). */
export class SignedCursors {
  readonly #hmac: Hmac;

  constructor(secrets: Secrets) {
    this.#hmac = new Hmac(secrets, 'cursor', MAC_BYTES);
  }

  /**
   * Makes a cursor of a place.
   *
   * @param binding whose it is, and of what: JSON
   * @param place JSON
   */
  make(binding: readonly unknown[], place: readonly unknown[]): string {
    const payload = Buffer.from(JSON.stringify(place));
    return Buffer.concat([this.#hmac.of(textOf(binding), payload), payload]).toString('base64url');
  }

  /**
   * Reads the place out of a cursor.
   *
   * @param what what the cursor should be of, for whoever sent another
   * @param parameter in which it came
   * @throws Problem invalid_cursor where it is none that was made for this binding
   */
  read<Place extends readonly unknown[]>(
    binding: readonly unknown[],
    cursor: string,
    what: string,
    parameter = 'cursor',
  ): Place {
    const bytes = Buffer.from(cursor, 'base64url');
    const canonical = bytes.toString('base64url') === cursor;
    const payload = bytes.subarray(MAC_BYTES);
    const genuine = canonical && this.#hmac.verify(bytes.subarray(0, MAC_BYTES), textOf(binding), payload);
    if (!genuine) {
      throw new Problem('invalid_cursor', {
        errors: [{ parameter, code: 'invalid_cursor', detail: `${parameter} is not one of ${what}.` }],
      });
    }
    return JSON.parse(payload.toString('utf8')) as Place;
  }
}

/** With an end that the text itself cannot hold. */
function textOf(binding: readonly unknown[]): string {
  return `${JSON.stringify(binding)}\0`;
}
