import type { errors, KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from '../../http/logger.js';
import type { Config } from '../../config/config.js';
import { Unavailable } from '../../database/postgres/unavailable.js';
import { AuthorizationRequest } from '../requests/authorization-request.js';
import type { OauthDatabase } from '../requests/oauth-database.js';
import type { OauthRequest } from '../requests/oauth-request.js';
import { pageFaultOf, SERVER_BUSY, type PageFault } from '../failures/page-fault.js';
import { apiResource, routeOf, ROUTES, SUPPORTED_SCOPES } from '../provider/provider.js';
import { refusalOf } from '../failures/refusal-reasons.js';
import type { Refusals } from '../failures/refusals.js';
import { looksSecret } from '../../values/string-rules.js';
import type { DeveloperRequests } from '../../auth/usage/developer-requests.js';
import { SECURITY_HEADERS } from '../../layout/layout.js';
import type { ShownPages } from '../ports/shown-pages.js';
import type { UpstreamSignOut } from '../ports/upstream-sign-out.js';
import { tellDeveloper } from './client-requests.js';

type Middleware = (ctx: KoaContextWithOIDC, next: () => Promise<void>) => Promise<void>;

/**
 * Wraps everything: sets security headers on every response; answers 503 after `deadlineMs`, or where the database was unreachable,
 * whatever the library made of that; writes the true reason of a refusal to the log, and to the audit trail where it concerns a member, else
 * to {@link Refusals}, under the error id that the caller sees. Records every request of a member’s app for its developer.
 */
export function answerFailures(
  database: OauthDatabase,
  refusals: Refusals,
  pages: ShownPages,
  developers: DeveloperRequests,
  logger: Logger,
  deadlineMs: number,
): Middleware {
  return async (ctx, next) => {
    const request = database.current!;
    ctx.set(SECURITY_HEADERS);
    try {
      await inTime(request, next(), deadlineMs);
    } catch (error) {
      request.failure ??= error as Error;
      // The session is stored around the library's own handler of errors.
      answer(ctx, pages, request, pageFaultOf(error));
    }
    if (request.unavailable) {
      answer(ctx, pages, request, SERVER_BUSY);
      ctx.set('Retry-After', '1');
    }
    const route = routeOf(ctx.path);
    const { failure } = request;
    if (!failure) {
      tellDeveloper(developers, ctx, route);
      return;
    }
    const unexpected = (failure as errors.OIDCProviderError).error === undefined;
    const words = refusalOf(failure);
    const error = request.unavailable ? 'temporarily_unavailable' : words.error;
    refusals.count(error);
    tellDeveloper(developers, ctx, route, { ...words, error, errorId: request.id, failure });
    const clientId = ctx.oidc?.client?.clientId;
    const line = { request_id: request.id, route, client_id: clientId, ...words };
    if (unexpected && !request.unavailable) logger.error({ ...line, err: failure }, 'oauth request failed');
    else logger.info(line, 'oauth request refused');
    if (isErrorBody(ctx.body)) ctx.body = { ...ctx.body, error_id: request.id };
    if (request.unavailable) return;
    const accountId = ctx.oidc?.account?.accountId;
    const userId = accountId === undefined ? request.token?.presented?.user_id : Number(accountId);
    const event = {
      type: ctx.path === ROUTES.token ? 'token.refused' : 'authorization.refused',
      actor: 'client',
      clientId: clientId ?? null,
      errorId: looksSecret(request.id) ? null : request.id,
      details: words,
    } as const;
    if (userId !== undefined) {
      await database.recordOrLog({ ...event, userId }, logger);
      return;
    }
    const sent = { ...ctx.oidc?.body, ...ctx.oidc?.params };
    await refusals.keep({
      ...words,
      errorId: request.id,
      route,
      clientId: clientId ?? sent.client_id,
      redirectUri: sent.redirect_uri,
      ip: request.ip,
    });
    // The browser keeps the response from the page, so nobody sees its error id.
    if (words.reason === 'origin_not_allowed') await refusals.record(event);
  };
}

/** Every wait for the database is bounded; this bounds their sum. The rest of `work` then fails at its next statement. */
async function inTime(request: OauthRequest, work: Promise<void>, deadlineMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      request.unavailable = true;
      reject(new Unavailable('not answered in time'));
    }, deadlineMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function answer(ctx: KoaContextWithOIDC, pages: ShownPages, request: OauthRequest, fault: PageFault): void {
  ctx.remove('Location');
  ctx.status = fault.status;
  if (ctx.method === 'GET' && ctx.accepts('json', 'html') === 'html') {
    const language = pages.languageOf(ctx.query.ui_locales, ctx.get('accept-language'));
    const { html, headers } = pages.render(fault.page(request.id), language);
    ctx.set(headers);
    ctx.body = html;
  } else {
    ctx.type = 'json';
    ctx.body = { error: fault.code, error_description: pages.meaningOf(fault.fault) };
  }
}

/** Corrects the metadata (RFC 8414, RFC 9728 §4): some of the library’s is what it could do, not what it does here. */
export function correctMetadata(config: Config, languages: readonly string[]): Middleware {
  return async (ctx, next) => {
    await next();
    if (ctx.status !== 200) return;
    if (ctx.path === ROUTES.jwks) {
      ctx.set('Cache-Control', 'public, max-age=60'); // a new key is published a rotation before it signs
    } else if (ctx.path.startsWith('/.well-known/')) {
      ctx.set('Cache-Control', 'public, max-age=300');
      ctx.body = {
        ...(ctx.body as object),
        scopes_supported: SUPPORTED_SCOPES,
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        id_token_signing_alg_values_supported: ['ES256', 'RS256'],
        claims_supported: ['sub', 'preferred_username', 'name', 'picture', 'iss', 'auth_time', 'amr', 'acr'],
        userinfo_endpoint: config.publicUrl + ROUTES.userinfo,
        revocation_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
        introspection_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
        ui_locales_supported: languages,
        ...(config.clientIdMetadataDocuments ? { client_id_metadata_document_supported: true } : {}),
        protected_resources: [apiResource(config)],
      };
    }
  };
}

/**
 * Refuses other response modes and types: the library would answer a refused `form_post` with a page that submits itself, and report a
 * refused response type in the mode that belongs to it. Values that it does not know it refuses correctly, by a redirect with the RFC’s code.
 */
export function refuseOtherResponses(): Middleware {
  return (ctx, next) => {
    if (ctx.path === ROUTES.authorization) {
      const { response_mode: mode, response_type: type } = ctx.query;
      const query = { ...ctx.query };
      if (typeof mode === 'string' && mode !== 'query') query.response_mode = 'unsupported';
      if (typeof type === 'string' && type !== 'code') query.response_type = 'unsupported';
      if (query.response_mode !== mode || query.response_type !== type) ctx.query = query;
    }
    return next();
  };
}

/**
 * Reads once and writes once where the member is signed in and needs to be asked nothing: see
 * {@link AuthorizationRequest}.
 */
export function gatherAuthorizations(database: OauthDatabase): Middleware {
  return async (ctx, next) => {
    if (ctx.method !== 'GET' || ctx.path !== ROUTES.authorization) return next();
    const { client_id: clientId } = ctx.query;
    if (typeof clientId !== 'string') return next();
    const authorization = (database.current!.authorization = new AuthorizationRequest(clientId));
    await next();
    if (authorization.isPending)
      throw new Error('a code was issued, and the session that it came of not stored');
  };
}

/** After a sign-out, leads on to the platform's own login where the session came from it; from there the browser goes where it would have gone. */
export function signOutUpstream(upstream: UpstreamSignOut, publicUrl: string): Middleware {
  return async (ctx, next) => {
    await next();
    const { params } = ctx.oidc ?? {};
    if (ctx.path !== `${ROUTES.end_session}/confirm` || ctx.status >= 400 || !params?.logout) return;
    const target = ctx.response.get('Location'); // none where a page was sent
    const isOurs = target === '' || target === `${publicUrl}${ROUTES.end_session}/success`;
    const onwards = await upstream.addressFor(isOurs ? undefined : target);
    if (onwards === undefined) return;
    ctx.redirect(onwards);
    ctx.status = 303;
  };
}

/** Answers a sign-out where nobody is signed in: nothing has to be confirmed, but the library would send a page that submits itself. */
export function signOutOfNothing(showSignedOut: (ctx: KoaContextWithOIDC) => void): Middleware {
  return async (ctx, next) => {
    await next();
    if (ctx.path !== ROUTES.end_session || ctx.status !== 200 || ctx.oidc.session?.accountId) return;
    const { post_logout_redirect_uri: target, state } = ctx.oidc.params ?? {};
    if (typeof target !== 'string') {
      showSignedOut(ctx);
      return;
    }
    const url = new URL(target); // registered, or the library would have dropped it
    if (typeof state === 'string') url.searchParams.set('state', state);
    ctx.redirect(url.href);
    ctx.status = 303;
  };
}

function isErrorBody(body: unknown): body is { error: string } {
  return typeof body === 'object' && body !== null && 'error' in body;
}
