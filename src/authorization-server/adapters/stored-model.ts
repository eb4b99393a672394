import type { AdapterPayload } from 'oidc-provider';
import type { TokenKeys } from '../../crypto/token-keys.js';
import type { Encryption } from '../../crypto/encryption.js';
import type { ClientDocuments } from './client-documents.js';
import type { ClientCache } from './client-cache.js';
import type { OauthDatabase } from '../requests/oauth-database.js';

/** What the adapters use from the rest of the application. */
export interface AdapterParts {
  readonly database: OauthDatabase;
  readonly keys: TokenKeys;
  readonly encryption: Encryption;
  readonly clients: ClientCache;
  readonly documents: ClientDocuments;
  /** The algorithms for which the provider has keys. */
  readonly signingAlgorithms: ReadonlySet<string>;
}

/** Adjusts `exp` and `iat` so that the library does not reject the model by this process's clock: only the database's counts. */
export function alive(payload: AdapterPayload): AdapterPayload {
  const now = Math.floor(Date.now() / 1000);
  if (payload.exp !== undefined && payload.exp <= now) payload.exp = now + 1;
  if (payload.iat !== undefined && payload.iat > now) payload.iat = now;
  return payload;
}
