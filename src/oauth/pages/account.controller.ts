import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Session } from 'oidc-provider';
import { DataSource } from 'typeorm';
import { Usage } from '../../auth/usage/usage.js';
import { CalendarLinks } from '../../calendar/calendar-links.js';
import { TokenKeys } from '../../crypto/token-keys.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { addressOf } from '../../values/network.js';
import { activityOf } from '../admin/activity.js';
import { ConnectedApps } from '../admin/connected-apps.js';
import { AccountPages } from './account-pages.js';
import { BrowserSessions } from './browser-sessions.js';
import { FormBody } from './form-body.js';
import type { Form } from './form-body.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { clientLogoPath, hostOf } from './page-client.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import { redirect } from './pages.js';
import type { ScopeName } from './pages.js';
import { SecurityPage } from './security-page.js';
import { SignOuts } from '../upstream/sign-outs.js';
import { Config } from '../../config/config.js';
import { isStorable } from '../../values/string-rules.js';

/** The pages that {@link AccountController} shows. */
type ShownPage = 'apps' | 'sessions' | 'activity' | 'security';

/** Connected apps, sessions, activity and security, below `/account`. Members who are not signed in sign in on the page itself. */
@Controller('account')
@Page()
export class AccountController {
  readonly #access: ConnectedApps;
  readonly #keys: TokenKeys;

  constructor(
    config: Config,
    private readonly dataSource: DataSource,
    private readonly account: AccountPages,
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly credentials: CredentialCache,
    private readonly usage: Usage,
    private readonly signOuts: SignOuts,
    private readonly links: CalendarLinks,
    private readonly securityPage: SecurityPage,
  ) {
    this.#access = new ConnectedApps(dataSource);
    this.#keys = new TokenKeys(config.secrets);
  }

  @Get()
  first(@Res() response: Response): void {
    redirect(response, '/account/apps');
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

  async #show(page: ShownPage, request: Request, response: Response): Promise<void> {
    const visitor = await this.account.visitor(page, request, response);
    if (!visitor) return;
    const { session, user, csrf } = visitor;
    if (page === 'security') await this.securityPage.send(request, response, visitor);
    else if (page === 'activity') {
      await this.usage.flush(); // so that what this process has counted is shown at once
      const activity = await activityOf(this.dataSource, user.id);
      this.account.send(response, { name: 'activity', csrf, user, ...activity });
    } else if (page === 'apps') {
      await this.usage.flush(); // so that what this process has counted is shown at once
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
      this.account.send(response, {
        name: 'apps',
        csrf,
        user,
        ...this.account.takeDone(request, response),
        revoke: '/account/apps/revoke',
        apps,
        more: count - shown.length,
      });
    } else {
      const keys = this.#keysOf(session);
      const own = keys.map((key) => key.toString('hex'));
      const { shown, count } = await this.#access.listSessions(user.id, keys);
      const apps = await this.#access.listApps(user.id);
      const links = await this.links.list(user.id);
      const sessions = shown.map(({ id, ...seen }) => ({
        ...seen,
        action: `/account/sessions/${id}/end`,
        current: own.includes(id),
      }));
      this.account.send(response, {
        name: 'sessions',
        csrf,
        user,
        ...this.account.takeDone(request, response),
        sessions,
        more: count - shown.length,
        end_others: '/account/sessions/end-others',
        also: { apps: apps.count, links: links.length },
      });
    }
  }

  /** The client's id is a form field: an id that an admin chose may contain characters that a path cannot. */
  @Post('apps/revoke')
  async revoke(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { user } = await this.account.sender(request, response, form);
    const { client_id: clientId } = form;
    if (typeof clientId !== 'string' || clientId.length > 100 || !isStorable(clientId))
      throw new PageFault(400, 'malformed');
    await this.#access.revoke(user.id, clientId, {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    this.credentials.revoke({ kind: 'user', id: String(user.id) });
    this.account.redirectDone(response, '/account/apps', 'access-revoked');
  }

  @Post('sessions/:session/end')
  async endSession(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('session') sessionId: string,
  ): Promise<void> {
    const { user, session } = await this.account.sender(request, response, form);
    const ended = await this.#access.endSession(user.id, sessionId, {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    const own = this.#keysOf(session).some((key) => key.toString('hex') === sessionId);
    this.account.redirectDone(response, '/account/sessions', ended && !own ? 'session-ended' : undefined);
  }

  @Post('sessions/end-others')
  async endOtherSessions(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const { user, session } = await this.account.sender(request, response, form);
    const by = { actor: 'user', ip: addressOf(request) ?? null } as const;
    const also = [form.also ?? []].flat();
    await this.#access.endOtherSessions(user.id, by, this.#keysOf(session));
    if (also.includes('apps')) {
      await this.#access.revoke(user.id, null, by);
      this.credentials.revoke({ kind: 'user', id: String(user.id) });
    }
    if (also.includes('links')) await this.links.revokeAll(user.id, by);
    const done = also.length > 0 ? 'others-and-access-ended' : 'others-ended';
    this.account.redirectDone(response, '/account/sessions', done);
  }

  @Post('sign-out')
  async signOut(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const member = await this.account.sentBy(request, response, form);
    const onwards = await this.signOuts.addressFor();
    if (member) {
      this.database.current!.signOut = { type: 'session.signed_out', actor: 'user', userId: member.user.id };
      await this.sessions.signOut(request, response);
    }
    redirect(response, onwards ?? '/sign-in/signed-out');
  }

  /** The keys under which the session may be stored. */
  #keysOf(session: Session): Buffer[] {
    return this.#keys.keysOf('Session.uid', session.uid);
  }
}
