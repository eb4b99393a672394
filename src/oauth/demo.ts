import { readFileSync } from 'node:fs';
import type { RequestHandler } from 'express';
import type { DataSource } from 'typeorm';
import { ALL_SCOPES } from '../auth/scopes.js';
import type { Config } from '../config/config.js';
import { UnchangingDocument } from '../http/output/unchanging-document.js';
import { ClientsService } from './admin/clients.service.js';

/** The client_id of the demo app in examples/browser-client. */
export const DEMO_CLIENT = 'demo';

const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

const FOLDER = new URL('../../../examples/browser-client/', import.meta.url);
const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/demo': ['index.html', 'text/html; charset=utf-8'],
  '/demo/callback': ['index.html', 'text/html; charset=utf-8'],
  '/demo/app.js': ['app.js', 'text/javascript; charset=utf-8'],
  '/demo/app.css': ['app.css', 'text/css; charset=utf-8'],
};

/** Registers the demo app where it is not, and keeps its address where PUBLIC_URL is now. For development only. */
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

/** Serves the demo app at /demo. */
export function demoApp(): RequestHandler {
  const documents = new Map(
    Object.entries(FILES).map(([path, [file, type]]) => [
      path,
      new UnchangingDocument(readFileSync(new URL(file, FOLDER)), { ...HEADERS, 'Content-Type': type }),
    ]),
  );
  return (request, response, next) => {
    const document = documents.get(request.context.path);
    if (!document || (request.method !== 'GET' && request.method !== 'HEAD')) {
      next();
      return;
    }
    request.context.route = request.context.path;
    document.send(request, response);
  };
}
