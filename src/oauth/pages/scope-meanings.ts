import { SCOPES } from '../../auth/scopes.js';
import type { Scope } from '../../auth/scopes.js';

/** The scopes that are not the API's. They come with the sign-in itself: nobody is asked for them alone. */
export const OPENID_MEANINGS: Readonly<Record<string, string>> = {
  openid: 'Know who you are: your username, name and picture',
  profile: 'Get your name, username and picture each time you sign in',
  offline_access: 'Stay connected while you are away, until you cut it off',
};

/** What a scope lets an app do, in words for members. */
export function meaningOf(scope: string): string {
  return OPENID_MEANINGS[scope] ?? SCOPES[scope as Scope];
}
