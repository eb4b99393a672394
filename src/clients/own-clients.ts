import type { DataSource } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import type { Config } from '../config/config.js';

/** The client_id of the API reference at /docs, where readers can sign in and try requests. */
export const DOCS_CLIENT = 'public-user-api-docs';

export const DEMO_CLIENT = 'demo';

type Origin = Pick<Config, 'publicUrl'>;

/** Registers the API reference as a public client. After `pua clients disable public-user-api-docs`, it stays disabled. */
export function registerDocsClient(dataSource: DataSource, { publicUrl }: Origin): Promise<void> {
  return registerOwnClient(dataSource, publicUrl, [DOCS_CLIENT, 'API reference', [`${publicUrl}/docs`], []]);
}

/** Registers the demo app. For development only. */
export function registerDemoClient(dataSource: DataSource, { publicUrl }: Origin): Promise<void> {
  const demo = `${publicUrl}/demo`;
  return registerOwnClient(dataSource, publicUrl, [DEMO_CLIENT, 'Demo app', [`${demo}/callback`], [demo]]);
}

/** Registers a public client, or updates its URIs if PUBLIC_URL has changed. Several servers can do this concurrently. */
async function registerOwnClient(
  dataSource: DataSource,
  origin: string,
  client: [id: string, name: string, redirectUris: string[], postLogoutRedirectUris: string[]],
): Promise<void> {
  const [id, name, redirect_uris] = client;
  await audited(dataSource, async (manager) => {
    const [row] = await manager.query<{ is_new: boolean }[]>(
      `INSERT INTO oauth_clients AS c (id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes)
VALUES ($1, $2, 'web', $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET redirect_uris = EXCLUDED.redirect_uris, allowed_origins = EXCLUDED.allowed_origins,
  post_logout_redirect_uris = EXCLUDED.post_logout_redirect_uris
WHERE c.redirect_uris <> EXCLUDED.redirect_uris
RETURNING c.xmax = 0 AS is_new`,
      [...client, [origin], ALL_SCOPES],
    );
    if (row?.is_new !== true) return;
    const details = { name, scopes: ALL_SCOPES, redirect_uris };
    await recordEvent(manager, { type: 'client.created', actor: 'system', clientId: id, details });
  });
}
