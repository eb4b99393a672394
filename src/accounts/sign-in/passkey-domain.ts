import { isIP } from 'node:net';
import type { Config } from '../../config/config.js';

/**
 * Gives the RP ID of passkeys (WebAuthn level 3, §4): the host of PUBLIC_URL.
 *
 * @returns undefined if there are no passkeys: the host is an IP address, for which browsers create none, or members sign in only
 * with the platform's own login, which then decides how
 */
export function passkeyDomain({ publicUrl, localSignIn }: Config): string | undefined {
  const { hostname } = new URL(publicUrl);
  const isName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  return localSignIn && isName ? hostname : undefined;
}
