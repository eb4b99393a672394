import type { KoaContextWithOIDC } from 'oidc-provider';
import { unionOf } from '../clients/profiles.js';
import type { Config } from '../config/config.js';
import { ROUTES } from './provider/provider.js';
import { apiResource, SUPPORTED_SCOPES } from './client-scopes.js';

const AUTH_METHODS = unionOf(({ authMethods }) => authMethods);

/** Corrects the library's metadata (RFC 8414, RFC 9728 §4), and sets `Cache-Control` for metadata and keys. */
export async function correctMetadata(
  ctx: KoaContextWithOIDC,
  next: () => Promise<void>,
  config: Config,
  languages: readonly string[],
): Promise<void> {
  await next();
  if (ctx.status !== 200) return;
  if (ctx.path === ROUTES.jwks) {
    ctx.set('Cache-Control', 'public, max-age=60'); // rotation activates a key that is already published
  } else if (ctx.path.startsWith('/.well-known/')) {
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = {
      ...(ctx.body as object),
      scopes_supported: SUPPORTED_SCOPES,
      response_types_supported: ['code'],
      response_modes_supported: unionOf(({ responseModes }) => responseModes),
      id_token_signing_alg_values_supported: ['ES256', 'RS256'],
      claims_supported: ['sub', 'preferred_username', 'name', 'picture', 'iss', 'auth_time', 'amr', 'acr'],
      userinfo_endpoint: config.publicUrl + ROUTES.userinfo,
      revocation_endpoint_auth_methods_supported: AUTH_METHODS,
      introspection_endpoint_auth_methods_supported: AUTH_METHODS,
      ui_locales_supported: languages,
      ...(config.clientIdMetadataDocuments ? { client_id_metadata_document_supported: true } : {}),
      protected_resources: [apiResource(config)],
    };
  }
}
