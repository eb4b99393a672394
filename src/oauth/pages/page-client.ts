import type { Client } from 'oidc-provider';
import type { PageClient } from './pages.js';

/** Describes a client for pages: the name it gives itself, and the host to which the member would be sent. */
export function pageClientOf(client: Client, redirectUri: string | undefined): PageClient {
  return {
    name: client.clientName ?? client.clientId,
    // A client's claims about itself are only as trustworthy as its host.
    host: hostOf(
      client.has_document === true ? client.clientId : (redirectUri ?? client.redirectUris?.[0] ?? ''),
    ),
    native: client.applicationType === 'native',
    ...(client.has_document === true
      ? { unreviewed: 'byDocument' as const }
      : client.by_member === true
        ? { unreviewed: 'byMember' as const }
        : {}),
    ...(client.has_logo === true ? { logo: clientLogoPath(client.clientId) } : {}),
    ...(client.clientUri === undefined ? {} : { homepage: client.clientUri }),
    ...(client.policyUri === undefined ? {} : { policy: client.policyUri }),
  };
}

/** Gives the path at which a client's logo is served. */
export function clientLogoPath(clientId: string): string {
  return `/logos/client?${new URLSearchParams({ client_id: clientId })}`;
}

/** Gives the host of a web redirect URI, or the scheme of a native app's. */
export function hostOf(uri: string): string {
  if (!URL.canParse(uri)) return '';
  const { protocol, host } = new URL(uri);
  return protocol === 'https:' || protocol === 'http:' ? host : protocol.slice(0, -1);
}

/** Lists what a page's Content-Security-Policy must allow as form targets: browsers also check redirects after a POST. */
export function formTargetsOf(uri: unknown): string[] {
  if (typeof uri !== 'string' || !URL.canParse(uri)) return [];
  const { protocol, origin } = new URL(uri);
  return [protocol === 'https:' || protocol === 'http:' ? origin : protocol];
}
