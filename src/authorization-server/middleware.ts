import { Injectable } from '@nestjs/common';
import type { errors, KoaContextWithOIDC, Provider } from 'oidc-provider';
import { Csrf } from '../accounts/browser-cookies.js';
import { recordAlone } from '../audit/audit.js';
import { DeveloperRequests } from '../auth/usage/developer-requests.js';
import { Config } from '../config/config.js';
import { Unavailable } from '../database/postgres/unavailable.js';
import { Logger } from '../runtime/logger.js';
import { ClientDocuments, findRedirectFault } from './adapters/client-documents.js';
import { endStep } from './adapters/state.adapter.js';
import { SECURITY_HEADERS } from '../layout/layout.js';
import {
  type ErrorPage,
  PageFault,
  pageFaultOf,
  SERVER_BUSY,
  unregisteredOf,
} from './failures/page-fault.js';
import { explain } from './reasons/explanations.js';
import { classify, REJECTION_REASONS, type RejectionReason } from './reasons/rejection-reasons.js';
import { Rejections } from './failures/rejections.js';
import { correctMetadata } from './metadata.js';
import { recordDeveloperRequest } from './failures/developer-record.js';
import {
  type FormFields,
  hostOf,
  onwardTo,
  pageClientOf,
  type ShownPage,
  ShownPages,
  UpstreamSignOut,
} from './ports.js';
import { isSignOutGone, isStepGone, onFailures, signOutStateOf } from './provider/library.js';
import { REOPENABLE, routeOf, ROUTES, SIGN_OUT } from './provider/provider.js';
import { rejectOtherResponses } from './provider/response-modes.js';
import { Consents } from './requests/consents.js';
import { OauthDatabase, type OauthRequest } from './requests/oauth-database.js';
import { TokenExchange } from './requests/token-exchange.js';

/** Reasons of rejections that the audit log contains even if the member is unknown. */
const RECORDED: readonly RejectionReason[] = [
  'origin_not_allowed',
  'wrong_client_secret',
  'client_secret_expired',
  'too_many_wrong_secrets',
];

type Next = () => Promise<void>;
type Step = (ctx: KoaContextWithOIDC, next: Next) => Promise<void>;

/** The `error_description` for the app if the external identity provider returned the member without a sign-in. */
export const NOT_SIGNED_IN = 'the member did not sign in';

@Injectable()
export class Middleware {
  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
    private readonly database: OauthDatabase,
    private readonly refusals: Rejections,
    private readonly consents: Consents,
    private readonly documents: ClientDocuments,
    private readonly pages: ShownPages,
    private readonly upstreamSignOut: UpstreamSignOut,
    private readonly developers: DeveloperRequests,
    private readonly csrf: Csrf,
  ) {}

  /** Adds the middleware, from the outermost layer to the innermost. */
  addTo(provider: Provider): void {
    const steps: readonly Step[] = [
      (ctx, next) => this.#answerFailures(ctx, next),
      (ctx, next) => correctMetadata(ctx, next, this.config, this.pages.languages),
      (ctx, next) => rejectOtherResponses(ctx, next, provider),
      (ctx, next) => this.#correctRedirects(ctx, next),
      (ctx, next) => this.#gatherAuthorizations(ctx, next),
    ];
    for (const step of steps) provider.use(step);
    provider.silent = true; // this class logs failures
    onFailures(provider, (error) => {
      if (this.database.current) this.database.current.failure ??= error;
    });
  }

  async renderError(ctx: KoaContextWithOIDC, error: Error): Promise<void> {
    if (redirectsToStep(ctx, error) || (await this.#repeatSignOut(ctx, error))) return;
    const fault = pageFaultOf(error, ctx.path.startsWith(ROUTES.end_session));
    const { client, params } = ctx.oidc ?? {};
    const request = this.database.current!;
    const page = fault.page(request.id, unregisteredOf(error, params, client));
    this.show(ctx, { ...page, detail: this.#detailOf(ctx, error, page.unregistered) });
  }

  #detailOf(
    ctx: KoaContextWithOIDC,
    error: Error,
    unregistered: ErrorPage['unregistered'],
  ): string | undefined {
    const { client, params } = ctx.oidc ?? {};
    // At sign-out, the library looks up the client of an unverified `id_token_hint`.
    const isOfHint =
      ctx.path === ROUTES.end_session && params?.id_token_hint && params.client_id === undefined;
    if (classify(error).reason === 'bad_id_token_hint' || (isOfHint && !client))
      return `${REJECTION_REASONS.bad_id_token_hint}.`;
    const fault = this.documents.faultOf(this.database.current!);
    if (!client) return fault && `The client document cannot be used: ${fault}.`;
    if (client.has_document !== true || unregistered?.name !== 'redirect_uri') return undefined;
    const { clientId, applicationType } = client;
    return findRedirectFault(clientId, unregistered.value, applicationType!, this.config.production);
  }

  renderSignOut(ctx: KoaContextWithOIDC): void {
    const { client, params } = ctx.oidc;
    const { post_logout_redirect_uri, state } = params ?? {};
    const repeated = Object.entries({ client_id: client?.clientId, post_logout_redirect_uri, state });
    const fields = [
      ['csrf', this.csrf.token(ctx.req, ctx.res)],
      ['xsrf', signOutStateOf(ctx)!.secret],
      ...repeated,
    ];
    this.show(ctx, {
      name: 'sign-out',
      action: SIGN_OUT,
      fields: Object.fromEntries(fields.filter(([, value]) => typeof value === 'string')) as FormFields,
      client: client ? pageClientOf(client, undefined) : null,
    });
  }

  /** Implements OAuth 2.0 Form Post Response Mode. */
  async postForm(ctx: KoaContextWithOIDC, action: string, fields: FormFields): Promise<void> {
    const isAutomatic = !(await this.#isStrange(ctx, fields.error_description));
    const client = pageClientOf(ctx.oidc.client!, action);
    ctx.status = 'error' in fields ? 400 : 200;
    this.show(ctx, { ...onwardTo(action), form: { client, fields }, isAutomatic });
  }

  show(ctx: KoaContextWithOIDC, page: ShownPage): void {
    const uiLocales = ctx.oidc?.params?.ui_locales ?? ctx.query.ui_locales;
    const language = this.pages.chooseLanguage(uiLocales, ctx.req.headers);
    const isRepeatable = ctx.method === 'GET' && page.name !== 'onward' && REOPENABLE.includes(ctx.path);
    const repeated = isRepeatable
      ? { to: ctx.originalUrl, csrf: this.csrf.token(ctx.req, ctx.res) } // as sent, including the faulty parameters
      : undefined;
    const { html, headers } = this.pages.render(page, language, repeated);
    ctx.set(headers);
    ctx.body = html;
  }

  /**
   * Responds 503 after the deadline, or if the database is unavailable. Logs every failure, and stores it unless it is a 503: in the audit
   * log if the member is known, else in {@link Rejections}. Records requests of members' apps for their developers.
   */
  async #answerFailures(ctx: KoaContextWithOIDC, next: Next): Promise<void> {
    const request = this.database.current!;
    ctx.set(SECURITY_HEADERS);
    try {
      await inTime(request, next(), this.config.databaseDeadlines.answer);
    } catch (error) {
      request.failure ??= error as Error;
      // The library stores the session outside its error handler, so errors of that step arrive here.
      if (!redirectsToStep(ctx, error)) this.#answer(ctx, request, pageFaultOf(error));
    }
    if (request.unavailable) {
      this.#answer(ctx, request, SERVER_BUSY);
      ctx.set('Retry-After', '1');
    }
    if (ctx.body === '') ctx.remove('Content-Type'); // some clients parse even an empty body if it has this header
    const route = routeOf(ctx.path);
    const { failure } = request;
    if (!failure) return recordDeveloperRequest(this.developers, ctx, route);
    const unexpected = (failure as errors.OIDCProviderError).error === undefined;
    const words = classify(failure);
    const error = request.unavailable ? 'temporarily_unavailable' : words.error;
    this.refusals.count(error);
    recordDeveloperRequest(this.developers, ctx, route, { ...words, error, errorId: request.id, failure });
    const clientId = ctx.oidc?.client?.clientId;
    const line = { request_id: request.id, route, client_id: clientId, ...words };
    if (unexpected && !request.unavailable)
      this.logger.error({ ...line, err: failure }, 'oauth request failed');
    else this.logger.info(line, 'oauth request rejected');
    const { body } = ctx as { body: unknown };
    if (typeof body === 'object' && body !== null && 'error' in body)
      ctx.body = {
        ...body,
        ...explain(ctx, words, failure, this.documents.faultOf(request), TokenExchange.of(ctx)?.ended),
        error_id: request.id,
      };
    if (request.unavailable) return;
    const accountId = ctx.oidc?.account?.accountId;
    const userId = accountId === undefined ? TokenExchange.of(ctx)?.token?.user_id : Number(accountId);
    const event = {
      type: ctx.path === ROUTES.token ? 'token.refused' : 'authorization.refused',
      actor: 'client',
      ip: request.ip ?? null,
      clientId: clientId ?? null,
      errorId: request.id,
      details: words,
    } as const;
    if (userId !== undefined) {
      const query = (text: string, values: unknown[]) => this.database.rows(text, values);
      await recordAlone(query, { ...event, userId }).catch((err: unknown) =>
        this.logger.error({ err, type: event.type }, 'an audit event could not be written'),
      );
      return;
    }
    const sent = { ...ctx.oidc?.body, ...ctx.oidc?.params };
    await this.refusals.keep({
      ...words,
      errorId: request.id,
      route,
      clientId: clientId ?? sent.client_id,
      redirectUri: sent.redirect_uri,
      ip: request.ip,
    });
    if (RECORDED.includes(words.reason)) await this.refusals.record(event);
  }

  #answer(ctx: KoaContextWithOIDC, request: OauthRequest, fault: PageFault): void {
    ctx.remove('Location');
    ctx.status = fault.status;
    if (ctx.method === 'GET' && ctx.accepts('json', 'html') === 'html') {
      this.show(ctx, fault.page(request.id));
    } else {
      ctx.type = 'json';
      ctx.body = { error: fault.code, error_description: this.pages.meaningOf(fault.fault) };
    }
  }

  async #correctRedirects(ctx: KoaContextWithOIDC, next: Next): Promise<void> {
    await next();
    this.#logOutWithoutSession(ctx);
    await this.#blockRedirectToUnconnectedApp(ctx);
    await this.#signOutUpstream(ctx);
    this.#endRedirects(ctx);
  }

  /** Replaces a redirect to another origin by a page if a member's form caused the redirect: see {@link onwardTo}. */
  #endRedirects(ctx: KoaContextWithOIDC): void {
    if (!this.#elsewhere(ctx) || !(isAnswered(ctx) || ctx.path === SIGN_OUT)) return;
    const page = onwardTo(ctx.response.get('Location'));
    ctx.remove('Location');
    ctx.status = 200;
    this.show(ctx, page);
  }

  /** @returns the redirect's target; undefined if there is no redirect, or the target is this server */
  #elsewhere(ctx: KoaContextWithOIDC): URL | undefined {
    const { publicUrl } = this.config;
    const target = ctx.status === 303 ? URL.parse(ctx.response.get('Location'), publicUrl) : null;
    return target && target.origin !== publicUrl ? target : undefined;
  }

  /** After a sign-out, also signs out at the external identity provider. A member who declined goes to the app or the account page. */
  async #signOutUpstream(ctx: KoaContextWithOIDC): Promise<void> {
    const { params } = ctx.oidc ?? {};
    if (ctx.path !== SIGN_OUT || ctx.status >= 400 || !params) return;
    const target = ctx.response.get('Location') || undefined; // none if a page was sent
    const isOurs = target?.startsWith(`${this.config.publicUrl}${ROUTES.end_session}/success`) === true;
    const onwards = params.logout
      ? await this.upstreamSignOut.addressFor(isOurs ? undefined : target, !signOutStateOf(ctx))
      : isOurs
        ? '/account/apps'
        : undefined;
    if (onwards === undefined) return;
    ctx.redirect(onwards);
    ctx.status = 303;
  }

  /**
   * Sends a page with a link instead of a redirect if no admin registered the app, and the member has neither connected it nor just used
   * our page: without this, anyone could register an app and use this server as an open redirector (RFC 9700 §4.11.2).
   */
  async #blockRedirectToUnconnectedApp(ctx: KoaContextWithOIDC): Promise<void> {
    const { client } = ctx.oidc ?? {};
    const target = this.#elsewhere(ctx);
    if (!target || !client) return;
    if (!(await this.#isStrange(ctx, target.searchParams.get('error_description')))) return;
    const href = ctx.response.get('Location');
    ctx.remove('Location');
    if (ctx.path.startsWith(ROUTES.end_session)) {
      ctx.status = 200;
      this.show(ctx, { name: 'signed-out', client: pageClientOf(client, href), back: href });
    } else {
      const next = { text: 'toApp', href, host: hostOf(href) } as const;
      const code = target.searchParams.get('error') ?? undefined;
      const fault = new PageFault(400, 'strangeApp', code, { next });
      const detail = target.searchParams.get('error_description') ?? undefined;
      ctx.status = fault.status;
      this.show(ctx, { ...fault.page(this.database.current!.id), detail });
    }
  }

  async #isStrange(ctx: KoaContextWithOIDC, description: string | null | undefined): Promise<boolean> {
    const { client, session } = ctx.oidc;
    const isVouchedFor = client!.by_member === true ? client!.is_approved === true : !client!.has_document;
    if (isVouchedFor) return false; // an admin registered or approved it
    if (isAnswered(ctx) && description !== NOT_SIGNED_IN) return false;
    const member = session?.accountId;
    return member === undefined || !(await this.consents.find(Number(member), client!));
  }

  /** Repeats the redirect if a member sends a sign-out form again after their session has ended. @returns false for other errors */
  async #repeatSignOut(ctx: KoaContextWithOIDC, error: Error): Promise<boolean> {
    if (!isSignOutGone(error)) return false;
    const { body, provider } = ctx.oidc;
    const { client_id: clientId, post_logout_redirect_uri: uri, state } = (body ?? {}) as FormFields;
    const client = typeof clientId === 'string' ? await provider.Client.find(clientId) : undefined;
    const isAllowed = typeof uri === 'string' && client?.postLogoutRedirectUriAllowed(uri) === true;
    const target = new URL(isAllowed ? uri : `${this.config.publicUrl}${ROUTES.end_session}/success`);
    if (client) ctx.oidc.entity('Client', client);
    if (isAllowed && typeof state === 'string') target.searchParams.set('state', state);
    ctx.redirect(target.href);
    ctx.status = 303;
    return true;
  }

  /** Completes a sign-out without a session, which needs no confirmation: the library would send a page that submits itself. */
  #logOutWithoutSession(ctx: KoaContextWithOIDC): void {
    if (ctx.path !== ROUTES.end_session || ctx.status !== 200 || ctx.oidc.session?.accountId) return;
    const { post_logout_redirect_uri: target, state } = ctx.oidc.params ?? {};
    if (typeof target !== 'string') return this.show(ctx, { name: 'signed-out', client: null });
    const url = new URL(target); // registered: the library rejects other URIs, or drops them if the client is unknown
    if (typeof state === 'string') url.searchParams.set('state', state);
    ctx.redirect(url.href);
    ctx.status = 303;
  }

  /** Lets {@link sessionAdapter} read the consent with the session. Ends a step that was not ended with the session's write. */
  async #gatherAuthorizations(ctx: KoaContextWithOIDC, next: Next): Promise<void> {
    const { authorization } = this.database.current!;
    const { client_id: clientId } = ctx.query;
    if (ctx.path === ROUTES.authorization && typeof clientId === 'string') authorization.clientId = clientId;
    await next();
    if (authorization.code || authorization.begun)
      throw new Error('a code was issued, or a step begun, but its session was not stored');
    if (authorization.ended) await endStep(this.database, authorization.ended);
  }
}

/** Limits the duration of a request, which may wait for several statements. After the deadline, `work` fails at its next statement. */
async function inTime(request: OauthRequest, work: Promise<void>, deadlineMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      request.unavailable = true;
      reject(new Unavailable('no response in time'));
    }, deadlineMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Tells whether the request resumes an authorization: the member has just used our page, which names the app. */
function isAnswered({ path }: KoaContextWithOIDC): boolean {
  return path.startsWith(`${ROUTES.authorization}/`);
}

/** Redirects from a missing interaction to the page that explains why it is missing. @returns false for other errors */
function redirectsToStep(ctx: KoaContextWithOIDC, error: unknown): boolean {
  if (!isAnswered(ctx) || !isStepGone(error)) return false;
  ctx.remove('Set-Cookie'); // the new session was not stored; the browser keeps its current one
  ctx.redirect(ctx.path.replace(ROUTES.authorization, '/interaction'));
  ctx.status = 303;
  return true;
}
