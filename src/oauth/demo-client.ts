import type { DataSource } from 'typeorm';
import { ALL_SCOPES } from '../auth/scopes.js';
import type { Config } from '../config/config.js';
import { ClientsService } from './admin/clients.service.js';

/** The client_id of the demo app in examples/browser-client. */
export const DEMO_CLIENT = 'demo';

/** Registers the demo app if it does not exist, and keeps its redirect URI in step with PUBLIC_URL. For development only. */
export async function registerDemoClient(dataSource: DataSource, config: Config): Promise<void> {
  const redirectUris = [`${config.publicUrl}/demo/callback`];
  const [client] = await dataSource.query<{ redirect_uris: string[] }[]>(
    'SELECT redirect_uris FROM oauth_clients WHERE id = $1',
    [DEMO_CLIENT],
  );
  if (!client) {
    await new ClientsService(dataSource, config).create({
      id: DEMO_CLIENT,
      name: 'Demo app',
      type: 'web',
      redirectUris,
      postLogoutRedirectUris: [`${config.publicUrl}/demo`],
      allowedOrigins: [config.publicUrl],
      scopes: ALL_SCOPES,
      actor: 'system',
    });
  } else if (client.redirect_uris[0] !== redirectUris[0]) {
    await dataSource.query(
      `UPDATE oauth_clients SET redirect_uris = $2, allowed_origins = $3, post_logout_redirect_uris = $4 WHERE id = $1`,
      [DEMO_CLIENT, redirectUris, [config.publicUrl], [`${config.publicUrl}/demo`]],
    );
  }
}
