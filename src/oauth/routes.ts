import type { NestExpressApplication } from '@nestjs/platform-express';
import type { RequestHandler } from 'express';
import { SUPPORTED_DPOP_ALGORITHMS } from '../auth/access-tokens/dpop.js';
import { RateLimits } from '../auth/rate-limits/rate-limits.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import { CONFIG } from '../config/config.js';
import type { Config } from '../config/config.js';
import { apiHeaders } from '../http/pipeline/api-headers.js';
import { compose } from '../http/pipeline/compose.js';
import { addressOf } from '../values/network.js';
import { UnchangingDocument } from '../http/output/unchanging-document.js';
import { AccountPages } from './pages/account-pages.js';
import { AuthorizationServer } from './provider/authorization-server.js';
import { demoApp } from './demo.js';
import { Interactions } from './pages/interactions.js';
import { OauthDatabase } from './storage/oauth-database.js';
import { PageRequests } from './pages/page-requests.js';
import { apiResource, ROUTES } from './provider/provider.js';
import { parameterFault } from './provider/parameters.js';
import { limitRequests, refuseParameters } from './rate-limit.js';
import { Userinfo } from './userinfo.js';

/**
 * The authorization server and its pages, ahead of everything that reads a body. Paths are matched to the letter: no other
 * spelling reaches the library, so none gets past a limit.
 */
export function oauthRoutes(app: NestExpressApplication): RequestHandler {
  const config = app.get<Config>(CONFIG);
  const server = app.get(AuthorizationServer);
  return compose(
    pinOrigin(config),
    limitRequests(server, app.get(RateLimits), app.get(PageRequests)),
    library(server, app.get(OauthDatabase), app.get(PageRequests)),
    exactly(ROUTES.userinfo, compose(apiHeaders, app.get(Userinfo).handler())),
    exactly('/.well-known/oauth-protected-resource/api/public', resourceMetadata(config)),
    ...(config.seedDemo ? [demoApp()] : []),
    spelledPlainly(compose(app.get(Interactions).router(), app.get(AccountPages).router())),
  );
}

/** What oidc-provider answers. */
function library(server: AuthorizationServer, database: OauthDatabase, pages: PageRequests): RequestHandler {
  return async (request, response, next) => {
    const { context, headers } = request;
    const { path, id } = context;
    if (!server.answers(path)) {
      next();
      return;
    }
    context.route = path.startsWith(`${ROUTES.authorization}/`) ? `${ROUTES.authorization}/:uid` : path;
    const fault = await parameterFault(request);
    if (fault !== undefined && path !== ROUTES.authorization) {
      refuseParameters(pages, request, response, fault);
      return;
    }
    await database.serve(
      { id, ip: addressOf(request), userAgent: headers['user-agent'], parameterFault: fault },
      () => server.handle(request, response),
    );
  };
}

/** What stands in paths of pages is made of these: what is spelled otherwise leads to no page. */
function spelledPlainly(pages: RequestHandler): RequestHandler {
  return (request, response, next) => {
    if (/^(\/[\w-]{1,100})+$/.test(request.context.path)) void pages(request, response, next);
    else next();
  };
}

function exactly(path: string, handler: RequestHandler): RequestHandler {
  return (request, response, next) => {
    if (request.context.path === path) void handler(request, response, next);
    else next();
  };
}

/** Whatever the request claims to be addressed to, it is PUBLIC_URL: from there the library makes every URL. */
function pinOrigin(config: Config): RequestHandler {
  const { host, protocol } = new URL(config.publicUrl);
  return (request, _response, next) => {
    const { headers } = request;
    headers.host = host;
    headers['x-forwarded-proto'] = protocol.slice(0, -1);
    delete headers['x-forwarded-host'];
    next();
  };
}

/** RFC 9728 §3. */
function resourceMetadata(config: Config): RequestHandler {
  const body = JSON.stringify({
    resource: apiResource(config),
    authorization_servers: [config.publicUrl],
    scopes_supported: ALL_SCOPES,
    bearer_methods_supported: ['header'],
    resource_name: 'Public User API',
    dpop_signing_alg_values_supported: SUPPORTED_DPOP_ALGORITHMS,
  });
  const document = new UnchangingDocument(body, {
    'Access-Control-Allow-Origin': '*',
    'Cache-Control': 'public, max-age=300',
    'Content-Type': 'application/json; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
  return (request, response, next) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      next();
      return;
    }
    request.context.route = request.context.path;
    document.send(request, response);
  };
}
