import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Session } from 'oidc-provider';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import type { SignedIn } from '../../accounts/sign-in.js';
import { Usage } from '../../auth/usage/usage.js';
import { TokenKeys } from '../../crypto/token-keys.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { addressOf } from '../../values/network.js';
import { activityOf } from '../admin/activity.js';
import { ConnectedApps } from '../admin/connected-apps.js';
import { BrowserSessions } from './browser-sessions.js';
import type { SignedInUser } from './browser-sessions.js';
import { DoneNotices } from './done-notices.js';
import { FormBody } from './form-body.js';
import type { Form } from './form-body.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { clientLogoPath, hostOf } from './page-client.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import { Pages, redirect } from './pages.js';
import type { Done, Page as AnyPage, ScopeName } from './pages.js';
import { SignInForm } from './sign-in-form.js';
import type { SignInRefusal } from './sign-in-form.js';
import { SecurityPage } from './security-page.js';
import { PasskeyForm } from '../passkeys/passkey-form.js';
import { SignOuts } from '../upstream/sign-outs.js';
import { ACCOUNT_PAGES, queryOf, UpstreamSignIns } from '../upstream/upstream-sign-ins.js';
import type { AccountPage } from '../upstream/upstream-sign-ins.js';
import { Config } from '../../config/config.js';
import { isStorable } from '../../values/string-rules.js';

/** Connected apps and sessions, below `/account`. Who is not signed in signs in on the page itself. */
@Controller('account')
@Page()
export class AccountController {
  readonly #access: ConnectedApps;
  readonly #keys: TokenKeys;

  constructor(
    private readonly config: Config,
    private readonly dataSource: DataSource,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly signInForm: SignInForm,
    private readonly csrf: Csrf,
    private readonly credentials: CredentialCache,
    private readonly usage: Usage,
    private readonly upstream: UpstreamSignIns,
    private readonly signOuts: SignOuts,
    private readonly done: DoneNotices,
    private readonly passkeyForm: PasskeyForm,
    private readonly securityPage: SecurityPage,
  ) {
    this.#access = new ConnectedApps(dataSource);
    this.#keys = new TokenKeys(config.secrets);
  }

  @Get('apps')
  apps(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#show('apps', request, response);
  }

  @Get('sessions')
  allSessions(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#show('sessions', request, response);
  }

  @Get('activity')
  activity(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#show('activity', request, response);
  }

  @Get('security')
  security(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#show('security', request, response);
  }

  /** Who is signed in signs in again, to change how. */
  @Get('security/confirm')
  async confirm(@Req() request: Request, @Res() response: Response): Promise<void> {
    const current = await this.sessions.current(request, response);
    if (!current) {
      await this.#show('security', request, response);
      return;
    }
    if (!this.config.localSignIn) {
      redirect(response, '/account/security/upstream?other=1');
      return;
    }
    const { upstream } = this.upstream.linkFrom('/account/security');
    this.#showSignIn('security', request, response, 200, {
      username: current.user.username,
      ...(upstream ? { upstream: { ...upstream, href: `${upstream.href}?other=1` } } : {}),
    });
  }

  @Get('security/upstream')
  signInToSecurityUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#signInUpstream('security', request, response);
  }

  @Get('activity/upstream')
  signInToActivityUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#signInUpstream('activity', request, response);
  }

  @Get('apps/upstream')
  signInToAppsUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#signInUpstream('apps', request, response);
  }

  @Get('sessions/upstream')
  signInToSessionsUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#signInUpstream('sessions', request, response);
  }

  @Post('apps/sign-in')
  signInToApps(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    return this.#signIn('apps', request, response, form);
  }

  @Post('activity/sign-in')
  signInToActivity(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    return this.#signIn('activity', request, response, form);
  }

  @Post('sessions/sign-in')
  signInToSessions(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    return this.#signIn('sessions', request, response, form);
  }

  @Post('security/sign-in')
  signInToSecurity(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    return this.#signIn('security', request, response, form);
  }

  @Post(':page/passkey/options')
  async passkeyOptions(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('page') name: string,
  ): Promise<void> {
    this.#checkCsrf(request, form);
    await this.passkeyForm.options(request, response, `/account/${pageNamed(name)}`);
  }

  @Post(':page/passkey')
  async signInWithPasskey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('page') name: string,
  ): Promise<void> {
    this.#checkCsrf(request, form);
    const page = pageNamed(name);
    const result = await this.passkeyForm.submit(request, response, form, `/account/${page}`, 'account');
    await this.#finishSignIn(page, request, response, result);
  }

  async #show(page: AccountPage, request: Request, response: Response): Promise<void> {
    const current = await this.sessions.current(request, response);
    if (!current) {
      if (this.config.localSignIn) this.#showSignIn(page, request, response, 200);
      else redirect(response, `/account/${page}/upstream`);
      return;
    }
    if (page === 'security') {
      await this.securityPage.send(request, response, current);
      return;
    }
    const sending = { formTargets: this.signOuts.formTargets };
    const { session, user } = current;
    const csrf = this.csrf.token(request, response);
    if (page === 'activity') {
      await this.usage.flush(); // what this process has seen shows at once
      const activity = await activityOf(this.dataSource, user.id);
      this.pages.send(response, 200, { name: 'activity', csrf, user, ...activity }, sending);
    } else if (page === 'apps') {
      await this.usage.flush(); // what this process has seen shows at once
      const { shown, count } = await this.#access.listApps(user.id);
      const apps = shown.map((app) => ({
        client_id: app.client_id,
        client: {
          name: app.client_name,
          host: hostOf(app.redirect_uri),
          ...(app.has_logo ? { logo: clientLogoPath(app.client_id) } : {}),
        },
        scopes: app.scopes as ScopeName[],
        since: app.since,
        last_used_at: app.last_used_at,
      }));
      this.pages.send(
        response,
        200,
        {
          name: 'apps',
          csrf,
          user,
          ...this.done.take(request, response),
          revoke: '/account/apps/revoke',
          apps,
          more: count - shown.length,
        },
        sending,
      );
    } else {
      const keys = this.#keysOf(session);
      const own = keys.map((key) => key.toString('hex'));
      const { shown, count } = await this.#access.listSessions(user.id, keys);
      const sessions = shown.map(({ id, ...seen }) => ({
        ...seen,
        action: `/account/sessions/${id}/end`,
        current: own.includes(id),
      }));
      this.pages.send(
        response,
        200,
        {
          name: 'sessions',
          csrf,
          user,
          ...this.done.take(request, response),
          sessions,
          more: count - shown.length,
          end_others: '/account/sessions/end-others',
        },
        sending,
      );
    }
  }

  async #signInUpstream(page: AccountPage, request: Request, response: Response): Promise<void> {
    const wishes = { anew: queryOf(request).has('other') };
    redirect(response, await this.upstream.begin(request, response, { account: page }, wishes));
  }

  #showSignIn(
    page: AccountPage,
    request: Request,
    response: Response,
    status: number,
    said: Said = {},
  ): void {
    this.pages.send(response, status, {
      name: 'sign-in',
      action: `/account/${page}/sign-in`,
      csrf: this.csrf.token(request, response),
      client: null,
      ...this.upstream.linkFrom(`/account/${page}`),
      ...this.passkeyForm.formOn(`/account/${page}`),
      ...said,
    });
  }

  async #signIn(page: AccountPage, request: Request, response: Response, form: Form): Promise<void> {
    this.#checkCsrf(request, form);
    if (!this.config.localSignIn) throw new PageFault(400, 'malformed');
    const result = await this.signInForm.submit(request, response, form, 'account');
    await this.#finishSignIn(page, request, response, result);
  }

  async #finishSignIn(
    page: AccountPage,
    request: Request,
    response: Response,
    result: SignedIn | SignInRefusal,
  ): Promise<void> {
    if ('status' in result) {
      this.#showSignIn(page, request, response, result.status, result.said);
      return;
    }
    await this.sessions.signIn(request, response, result);
    redirect(response, `/account/${page}`);
  }

  /** The client's id stands in the form: one that an admin chose may hold what no path can. */
  @Post('apps/revoke')
  async revoke(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { user } = await this.#signedIn(request, response, form);
    const { client_id: clientId } = form;
    if (typeof clientId !== 'string' || clientId.length > 100 || !isStorable(clientId))
      throw new PageFault(400, 'malformed');
    await this.#access.revoke(user.id, clientId, {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    this.credentials.revoke({ kind: 'user', id: String(user.id) });
    this.#redirectDone(response, 'apps', 'access-revoked');
  }

  @Post('sessions/:session/end')
  async endSession(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('session') sessionId: string,
  ): Promise<void> {
    const { user, session } = await this.#signedIn(request, response, form);
    const ended = await this.#access.endSession(user.id, sessionId, {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    const own = this.#keysOf(session).some((key) => key.toString('hex') === sessionId);
    this.#redirectDone(response, 'sessions', ended && !own ? 'session-ended' : undefined);
  }

  @Post('sessions/end-others')
  async endOtherSessions(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const { user, session } = await this.#signedIn(request, response, form);
    await this.#access.endOtherSessions(
      user.id,
      { actor: 'user', ip: addressOf(request) ?? null },
      this.#keysOf(session),
    );
    this.#redirectDone(response, 'sessions', 'others-ended');
  }

  @Post('sign-out')
  async signOut(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { user } = await this.#signedIn(request, response, form);
    const onwards = await this.signOuts.addressFor();
    await this.sessions.signOut(request, response);
    await this.database.record({ type: 'session.signed_out', actor: 'user', userId: user.id });
    if (onwards !== undefined) {
      redirect(response, onwards);
      return;
    }
    this.pages.send(response, 200, { name: 'signed-out', client: null });
  }

  #redirectDone(response: Response, page: AccountPage, done: Done | undefined): void {
    if (done !== undefined) this.done.leave(response, done);
    redirect(response, `/account/${page}`);
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
    if (!current) throw new PageFault(401, 'signedOut');
    return current;
  }

  #checkCsrf(request: Request, form: Form): void {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
  }
}

/** What a sign-in page says beside what it always does. */
type Said = Pick<Extract<AnyPage, { name: 'sign-in' }>, 'fault' | 'username' | 'upstream'>;

function pageNamed(name: string): AccountPage {
  const page = ACCOUNT_PAGES.find((known) => known === name);
  if (page === undefined) throw new PageFault(400, 'malformed');
  return page;
}
