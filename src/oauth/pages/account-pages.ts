import { Inject, Injectable } from '@nestjs/common';
import express from 'express';
import type { Request, Response, Router } from 'express';
import type { Session } from 'oidc-provider';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import { GrantUsageRecorder } from '../../auth/access-tokens/grant-usage.js';
import { TokenKeys } from '../../auth/access-tokens/token-keys.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { addressOf } from '../../values/network.js';
import { ConnectedApps } from '../admin/connected-apps.service.js';
import { BrowserSessions } from './browser-sessions.js';
import type { SignedInUser } from './browser-sessions.js';
import { meaningOf } from './interactions.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { hostOf } from './page-client.js';
import { PageFault } from './page-faults.js';
import { PageRequests } from './page-requests.js';
import type { Form } from './page-requests.js';
import { SignInForm } from './sign-in-form.js';
import type { SignInRefusal } from './sign-in-form.js';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';

type AccountPage = 'apps' | 'sessions';

/** Connected apps and sessions, below `/account`. Who is not signed in signs in on the page itself. */
@Injectable()
export class AccountPages {
  readonly #access: ConnectedApps;
  readonly #keys: TokenKeys;

  constructor(
    @Inject(CONFIG) config: Config,
    dataSource: DataSource,
    private readonly requests: PageRequests,
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly signInForm: SignInForm,
    private readonly csrf: Csrf,
    private readonly credentials: CredentialCache,
    private readonly usage: GrantUsageRecorder,
  ) {
    this.#access = new ConnectedApps(dataSource);
    this.#keys = new TokenKeys(config.secrets);
  }

  router(): Router {
    const router = express.Router({ caseSensitive: true, strict: true });
    const { requests } = this;
    for (const page of ['apps', 'sessions'] as const) {
      router.get(
        `/account/${page}`,
        requests.handler(`/account/${page}`, (request, response) => this.#show(page, request, response)),
      );
      router.post(
        `/account/${page}/sign-in`,
        requests.handler(`/account/${page}/sign-in`, (...step) => this.#signIn(page, ...step)),
      );
    }
    router.post(
      '/account/apps/:client/disconnect',
      requests.handler('/account/apps/:client/disconnect', (...step) => this.#disconnect(...step)),
    );
    router.post(
      '/account/sessions/:session/end',
      requests.handler('/account/sessions/:session/end', (...step) => this.#endSession(...step)),
    );
    router.post(
      '/account/sessions/end-others',
      requests.handler('/account/sessions/end-others', (...step) => this.#endOtherSessions(...step)),
    );
    router.post(
      '/account/sign-out',
      requests.handler('/account/sign-out', (...step) => this.#signOut(...step)),
    );
    return router;
  }

  async #show(page: AccountPage, request: Request, response: Response): Promise<void> {
    const current = await this.sessions.current(request, response);
    if (!current) {
      this.#showSignIn(page, request, response, 200);
      return;
    }
    const { session, user } = current;
    const csrf = this.csrf.token(request, response);
    if (page === 'apps') {
      await this.usage.flush(); // what this process has seen shows at once
      const { shown, count } = await this.#access.listApps(user.id);
      const apps = shown.map((app) => ({
        action: `/account/apps/${encodeURIComponent(app.client_id)}/disconnect`,
        client: { name: app.client_name, host: hostOf(app.redirect_uri) },
        scopes: app.scopes.map((name) => ({ name, meaning: meaningOf(name) })),
        since: app.since,
        last_used_at: app.last_used_at,
      }));
      this.requests.send(response, 200, { name: 'apps', csrf, user, apps, more: count - shown.length });
    } else {
      const keys = this.#keysOf(session);
      const own = keys.map((key) => key.toString('hex'));
      const { shown, count } = await this.#access.listSessions(user.id, keys);
      const sessions = shown.map(({ id, ...seen }) => ({
        ...seen,
        action: `/account/sessions/${id}/end`,
        current: own.includes(id),
      }));
      this.requests.send(response, 200, {
        name: 'sessions',
        csrf,
        user,
        sessions,
        more: count - shown.length,
        end_others: '/account/sessions/end-others',
      });
    }
  }

  #showSignIn(
    page: AccountPage,
    request: Request,
    response: Response,
    status: number,
    said: SignInRefusal['said'] = {},
  ): void {
    this.requests.send(response, status, {
      name: 'sign-in',
      action: `/account/${page}/sign-in`,
      csrf: this.csrf.token(request, response),
      client: null,
      ...said,
    });
  }

  async #signIn(page: AccountPage, request: Request, response: Response, form: Form): Promise<void> {
    this.#checkCsrf(request, form);
    const result = await this.signInForm.submit(request, response, form, 'account');
    if ('status' in result) {
      this.#showSignIn(page, request, response, result.status, result.said);
      return;
    }
    await this.sessions.signIn(request, response, result);
    this.requests.redirect(response, `/account/${page}`);
  }

  async #disconnect(request: Request, response: Response, form: Form): Promise<void> {
    const { user } = await this.#signedIn(request, response, form);
    await this.#access.revoke(user.id, request.params.client as string, {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    this.credentials.revoke({ kind: 'user', id: String(user.id) });
    this.requests.redirect(response, '/account/apps');
  }

  async #endSession(request: Request, response: Response, form: Form): Promise<void> {
    const { user } = await this.#signedIn(request, response, form);
    await this.#access.endSession(user.id, request.params.session as string, {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    this.requests.redirect(response, '/account/sessions');
  }

  async #endOtherSessions(request: Request, response: Response, form: Form): Promise<void> {
    const { user, session } = await this.#signedIn(request, response, form);
    await this.#access.endOtherSessions(
      user.id,
      { actor: 'user', ip: addressOf(request) ?? null },
      this.#keysOf(session),
    );
    this.requests.redirect(response, '/account/sessions');
  }

  async #signOut(request: Request, response: Response, form: Form): Promise<void> {
    const { user } = await this.#signedIn(request, response, form);
    await this.sessions.signOut(request, response);
    await this.database.record({ type: 'session.signed_out', actor: 'user', userId: user.id });
    this.requests.send(response, 200, { name: 'signed-out', client: null });
  }

  /** Under which the session may be stored. */
  #keysOf(session: Session): Buffer[] {
    return this.#keys.keysOf('Session.uid', session.uid);
  }

  async #signedIn(
    request: Request,
    response: Response,
    form: Form,
  ): Promise<{ user: SignedInUser; session: Session }> {
    this.#checkCsrf(request, form);
    const current = await this.sessions.current(request, response);
    if (!current)
      throw new PageFault(401, 'You are signed out', 'Open the page again and sign in, then try once more.');
    return current;
  }

  #checkCsrf(request: Request, form: Form): void {
    if (!this.csrf.verify(request, form.csrf))
      throw new PageFault(403, 'This did not work', 'The form was not sent from our page. Please try again.');
  }
}
