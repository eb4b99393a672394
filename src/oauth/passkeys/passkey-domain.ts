import { isIP } from 'node:net';
import type { Config } from '../../config/config.js';

/**
 * The RP ID of passkeys (WebAuthn level 3, §4): the host of PUBLIC_URL.
 *
 * @returns undefined where there are no passkeys: the host is an address, for which browsers make none, or members sign in with the
 * platform's own login alone, which then decides how
 */
export function passkeyDomain({ publicUrl, localSignIn }: Config): string | undefined {
  const { hostname } = new URL(publicUrl);
  const isName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  return localSignIn && isName ? hostname : undefined;
}
