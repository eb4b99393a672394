import type { DataSource } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import type { Config } from '../config/config.js';

/** The client_id of the reference at /docs, in which readers can sign in and try each call. */
export const DOCS_CLIENT = 'public-user-api-docs';

const NAME = 'API reference';

/**
 * Registers the reference as a public client, and keeps its redirect URI in step with PUBLIC_URL: it is the reference's own page,
 * so codes go nowhere else. Several servers may do so at the same time. An operator who wants no sign-ins there disables the
 * client (`pua clients disable public-user-api-docs`), and it stays disabled.
 */
export async function registerDocsClient(
  dataSource: DataSource,
  { publicUrl }: Pick<Config, 'publicUrl'>,
): Promise<void> {
  const redirectUris = [`${publicUrl}/docs`];
  await audited(dataSource, async (manager) => {
    const [row] = await manager.query<{ is_new: boolean }[]>(
      `INSERT INTO oauth_clients AS c (id, name, type, redirect_uris, allowed_origins, scopes) VALUES ($1, $2, 'web', $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET redirect_uris = EXCLUDED.redirect_uris, allowed_origins = EXCLUDED.allowed_origins
WHERE c.redirect_uris <> EXCLUDED.redirect_uris
RETURNING c.xmax = 0 AS is_new`,
      [DOCS_CLIENT, NAME, redirectUris, [publicUrl], ALL_SCOPES],
    );
    if (row?.is_new !== true) return;
    await recordEvent(manager, {
      type: 'client.created',
      actor: 'system',
      clientId: DOCS_CLIENT,
      details: { name: NAME, scopes: ALL_SCOPES, redirect_uris: redirectUris },
    });
  });
}
