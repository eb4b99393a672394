import type { Client } from 'oidc-provider';

/** A client as members see it. All of it is the client's own claim, except for the registered host. */
export interface PageClient {
  readonly name: string;
  /** Host of the redirect URI; the scheme for a native app's own. */
  readonly host: string;
  /** An app on the member's device: another app can claim its redirect URI (RFC 8252 §8.6), so the consent page warns. */
  readonly native?: boolean;
  /** Registered by a member, or by nobody: known by its own document alone. The consent page says so. */
  readonly unreviewed?: 'byMember' | 'byDocument' | undefined;
  /** Path of its logo, which is served from here. */
  readonly logo?: string | undefined;
  /** URL of its home page. */
  readonly homepage?: string | undefined;
  /** URL of its privacy policy. */
  readonly policy?: string | undefined;
}

/** Describes a client for pages: the name it gives itself, and the host to which the member would be sent. */
export function pageClientOf(client: Client, redirectUri: string | undefined): PageClient {
  return {
    name: client.clientName ?? client.clientId,
    // A client's claims about itself are only as trustworthy as its host.
    host: hostOf(
      client.has_document === true ? client.clientId : (redirectUri ?? client.redirectUris?.[0] ?? ''),
    ),
    native: client.applicationType === 'native',
    unreviewed:
      client.has_document === true ? 'byDocument' : client.by_member === true ? 'byMember' : undefined,
    logo: client.has_logo === true ? clientLogoPath(client.clientId) : undefined,
    homepage: client.clientUri,
    policy: client.policyUri,
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
