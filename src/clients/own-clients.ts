import type { DataSource } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import type { Config } from '../config/config.js';

/** The client_id of the reference at /docs, in which readers can sign in and try each call. */
export const DOCS_CLIENT = 'public-user-api-docs';

/** A page of this server's own on which a member signs in. */
interface OwnClient {
  readonly id: string;
  readonly name: string;
  /** Path to which codes go, and nowhere else. */
  readonly callback: string;
  /** Path to which a sign-out may lead back. */
  readonly afterSignOut?: string;
}

/**
 * Registers the reference as a public client. An operator who wants no sign-ins there disables the client
 * (`pua clients disable public-user-api-docs`), and it stays disabled.
 */
export function registerDocsClient(dataSource: DataSource, config: Pick<Config, 'publicUrl'>): Promise<void> {
  return registerOwnClient(dataSource, config, { id: DOCS_CLIENT, name: 'API reference', callback: '/docs' });
}

/** The client_id of the demo app in examples/browser-client. */
export const DEMO_CLIENT = 'demo';

/** Registers the demo app. For development only. */
export function registerDemoClient(dataSource: DataSource, config: Pick<Config, 'publicUrl'>): Promise<void> {
  const client = { id: DEMO_CLIENT, name: 'Demo app', callback: '/demo/callback', afterSignOut: '/demo' };
  return registerOwnClient(dataSource, config, client);
}

/** Registers a public client, and keeps its URIs in step with PUBLIC_URL. Several servers may do so at the same time. */
async function registerOwnClient(
  dataSource: DataSource,
  { publicUrl }: Pick<Config, 'publicUrl'>,
  { id, name, callback, afterSignOut }: OwnClient,
): Promise<void> {
  const redirectUris = [publicUrl + callback];
  const afterwards = afterSignOut === undefined ? [] : [publicUrl + afterSignOut];
  await audited(dataSource, async (manager) => {
    const [row] = await manager.query<{ is_new: boolean }[]>(
      `INSERT INTO oauth_clients AS c (id, name, type, redirect_uris, post_logout_redirect_uris, allowed_origins, scopes)
VALUES ($1, $2, 'web', $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET redirect_uris = EXCLUDED.redirect_uris, allowed_origins = EXCLUDED.allowed_origins,
  post_logout_redirect_uris = EXCLUDED.post_logout_redirect_uris
WHERE c.redirect_uris <> EXCLUDED.redirect_uris
RETURNING c.xmax = 0 AS is_new`,
      [id, name, redirectUris, afterwards, [publicUrl], ALL_SCOPES],
    );
    if (row?.is_new !== true) return;
    await recordEvent(manager, {
      type: 'client.created',
      actor: 'system',
      clientId: id,
      details: { name, scopes: ALL_SCOPES, redirect_uris: redirectUris },
    });
  });
}
