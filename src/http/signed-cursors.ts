import { Hmac } from '../crypto/hmac.js';
import type { Secrets } from '../crypto/secrets.js';
import { Problem } from './output/problems.js';

const MAC_BYTES = 16;

/** Cursors in responses: opaque to callers, signed, and valid only for what they are bound to (docs/api-contract.md §7). */
export class SignedCursors {
  readonly #hmac: Hmac;

  constructor(secrets: Secrets) {
    this.#hmac = new Hmac(secrets, 'cursor', MAC_BYTES);
  }

  /**
   * Makes a cursor from a position.
   *
   * @param binding whose it is, and of which list: JSON
   * @param position the position: JSON
   */
  make(binding: readonly unknown[], position: readonly unknown[]): string {
    const payload = Buffer.from(JSON.stringify(position));
    return Buffer.concat([this.#hmac.of(textOf(binding), payload), payload]).toString('base64url');
  }

  /**
   * Reads the position from a cursor.
   *
   * @param what what the cursor should belong to, for the message to whoever sent another
   * @param parameter in which it came
   * @throws Problem invalid_cursor where it was not made for this binding
   */
  read<Position extends readonly unknown[]>(
    binding: readonly unknown[],
    cursor: string,
    what: string,
    parameter = 'cursor',
  ): Position {
    const bytes = Buffer.from(cursor, 'base64url');
    const canonical = bytes.toString('base64url') === cursor;
    const payload = bytes.subarray(MAC_BYTES);
    const genuine = canonical && this.#hmac.verify(bytes.subarray(0, MAC_BYTES), textOf(binding), payload);
    if (!genuine) {
      throw new Problem('invalid_cursor', {
        errors: [{ parameter, code: 'invalid_cursor', detail: `${parameter} is not one of ${what}.` }],
      });
    }
    return JSON.parse(payload.toString('utf8')) as Position;
  }
}

/** Terminated by a character that cannot occur in the text. */
function textOf(binding: readonly unknown[]): string {
  return `${JSON.stringify(binding)}\0`;
}
