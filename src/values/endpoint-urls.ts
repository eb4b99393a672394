import { isIP } from 'node:net';
import { isLoopbackAddress, isPublicAddress } from './network.js';
import { isHttpUrl } from './string-rules.js';

const MAX_URL_LENGTH = 2_000;

/** Finds a fault of a webhook URL. @param production forbids http and loopback addresses @returns a sentence without full stop, if any */
export function findEndpointFault(text: string, production: boolean): string | undefined {
  const url = isHttpUrl(text) ? new URL(text) : undefined;
  if (!url || text.length > MAX_URL_LENGTH || url.hash !== '')
    return `The URL must be absolute, without user, password and fragment, and have at most ${MAX_URL_LENGTH} characters`;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isNameOfHost = /(^|\.)localhost\.?$/.test(host); // RFC 6761 §6.3
  const isLocal = host === 'localhost' || isLoopbackAddress(host);
  if (url.protocol === 'http:' && (production || !isLocal))
    return production
      ? 'The URL must be https'
      : 'The URL must be https, or, outside production, http to this host (localhost, 127.0.0.1, [::1])';
  if ((isNameOfHost || isIP(host) !== 0) && !isPublicAddress(host) && (production || !isLocal))
    return 'The URL must point to an address on the internet';
  return undefined;
}
