import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { Session } from 'oidc-provider';
import type { QueryResultRow } from 'pg';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import { AuthorizationServer } from '../../authorization-server/authorization-server.js';
import { LIFETIMES } from '../../authorization-server/provider/lifetimes.js';
import { OauthDatabase } from '../../authorization-server/requests/oauth-database.js';
import { sessionCookie } from '../../authorization-server/provider/provider.js';
import { Config } from '../../config/config.js';
import type { PageUser } from '../rendering/page-contents.js';

export interface SignedInUser extends PageUser {
  readonly id: number;
}

const FIND_USER = {
  name: 'find-signed-in-user',
  text: 'SELECT id, username, display_name FROM users WHERE id = $1 AND disabled_at IS NULL',
};

/** The library's browser sessions, for pages that are not part of an authorization request. */
@Injectable()
export class BrowserSessions {
  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly database: OauthDatabase,
  ) {}

  /** @returns undefined if nobody is signed in, or the member is disabled */
  async current(response: Response): Promise<{ session: Session; user: SignedInUser } | undefined> {
    const { provider } = this.server;
    const session = await provider.Session.get(provider.createContext(response.req, response));
    if (session.accountId === undefined) return undefined;
    const user = await this.user(session.accountId);
    return user && { session, user };
  }

  /** @returns the member if they are not disabled */
  async user(accountId: string): Promise<SignedInUser | undefined> {
    const [user] = await this.database.read<SignedInUser & QueryResultRow>(FIND_USER, [accountId]);
    return user;
  }

  /** Starts a session with a new id, and destroys any that the browser had before. */
  async signIn(response: Response, signedIn: SignedIn): Promise<void> {
    const { userId, at, validSince, amr, acr, upstream } = signedIn;
    const { provider } = this.server;
    const context = provider.createContext(response.req, response);
    const before = await provider.Session.get(context);
    if (before.exp !== undefined) await before.destroy();
    const session = new provider.Session();
    this.database.current!.signIns.set(userId, validSince);
    this.database.current!.upstream = upstream;
    this.database.current!.cameUpstream = upstream !== undefined;
    session.loginAccount({
      accountId: String(userId),
      loginTs: at,
      ...(amr ? { amr: [...amr] } : {}),
      ...(acr === undefined ? {} : { acr }),
    });
    await session.save(LIFETIMES.session);
    context.cookies.set(provider.cookieName('session'), session.jti, {
      ...sessionCookie(this.config),
      maxAge: LIFETIMES.session * 1000,
    });
  }

  /** Ends the browser's session; apps keep their access. */
  async signOut(response: Response): Promise<void> {
    const { provider } = this.server;
    const context = provider.createContext(response.req, response);
    const session = await provider.Session.get(context);
    if (session.exp !== undefined) await session.destroy();
    context.cookies.set(provider.cookieName('session'), null, sessionCookie(this.config));
  }

  /**
   * Lets another member sign in over the current one: the library would otherwise respond with a self-submitting page. The session
   * keeps its uid, to which the interaction is bound, and loses everything else.
   */
  async forgetMember(response: Response): Promise<void> {
    const { provider } = this.server;
    const session = await provider.Session.get(provider.createContext(response.req, response));
    if (session.accountId === undefined) return;
    for (const name of ['accountId', 'loginTs', 'amr', 'acr', 'authorizations'] as const)
      delete session[name];
    await session.persist();
  }
}
