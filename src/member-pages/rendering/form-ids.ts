import { randomBytes } from '../../crypto/random.js';

/** The id of a form on a page, in its field `form`: see `SentForms`. */
export const FORM_ID = /^[\w-]{24}$/;

/** Makes a {@link FORM_ID}. */
export function newFormId(): string {
  return randomBytes(18).toString('base64url');
}
