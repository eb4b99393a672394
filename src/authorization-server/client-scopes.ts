import type { Client } from 'oidc-provider';
import { ALL_SCOPES } from '../auth/scopes.js';
import type { Config } from '../config/config.js';

/** Returns the API's resource identifier (RFC 8707), the audience of every access token. */
export function apiResource(config: Config): string {
  return `${config.publicUrl}/api/public`;
}

/** OpenID scopes (Core §5.4, §11) that every client may request. Not `email`: apps never get a member's email address. */
export const OPENID_SCOPES: readonly string[] = ['openid', 'offline_access', 'profile'];

/** Lists the scopes that the client may request. */
export function allowedScopes(client: Client): string[] {
  return [...OPENID_SCOPES, ...(client.api_scopes as string).split(' ').filter(Boolean)];
}

export const SUPPORTED_SCOPES = [...OPENID_SCOPES, ...ALL_SCOPES];
