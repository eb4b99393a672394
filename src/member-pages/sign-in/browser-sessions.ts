import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { Grant, Interaction, InteractionResults, Session } from 'oidc-provider';
import type { QueryResultRow } from 'pg';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { AuthorizationServer } from '../../authorization-server/authorization-server.js';
import { isStepGone, PageFault } from '../../authorization-server/failures/page-fault.js';
import { formTargetsOf } from '../../authorization-server/ports/page-client.js';
import { LIFETIMES } from '../../authorization-server/provider/lifetimes.js';
import { sessionCookie } from '../../authorization-server/provider/provider.js';
import { Decision } from '../../authorization-server/requests/decision.js';
import { OauthDatabase } from '../../authorization-server/requests/oauth-database.js';
import { OneTimeStates } from '../../authorization-server/requests/one-time-states.js';
import { Config } from '../../config/config.js';
import type { PageUser } from '../rendering/page-contents.js';
import { redirect } from '../rendering/pages.js';

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

/** Ends a step of an app's request, however the member completed it, and returns to the library. */
@Injectable()
export class FinishedSteps {
  constructor(
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly credentials: CredentialCache,
    private readonly states: OneTimeStates,
    private readonly server: AuthorizationServer,
  ) {}

  async signedIn(
    response: Response,
    interaction: Interaction,
    { userId, at, validSince, amr, acr, upstream }: SignedIn,
  ): Promise<void> {
    const accountId = String(userId);
    const before = interaction.session?.accountId;
    this.database.current!.signIns.set(userId, validSince);
    const login = {
      accountId,
      ts: at,
      ...(amr ? { amr: [...amr] } : {}),
      ...(acr ? { acr } : {}),
      ...(upstream ? { upstream } : {}),
    };
    await this.#store(interaction, { login }, new Decision());
    if (before !== undefined && before !== accountId) await this.sessions.forgetMember(response);
    redirect(response, interaction.returnTo);
  }

  /** Stores that the member has given consent, and the grant that comes of it. @param grant makes it */
  async consented(
    response: Response,
    interaction: Interaction,
    decision: Decision,
    grant: () => Promise<Grant>,
  ): Promise<void> {
    this.database.current!.decision = decision; // which holds the grant until it is stored
    const { jti: grantId } = await grant();
    await this.#store(interaction, { ...interaction.lastSubmission, consent: { grantId } }, decision);
    // Tokens from before may do less now; other processes are notified by the database.
    this.credentials.revoke({ kind: 'user', id: interaction.session!.accountId });
    redirect(response, interaction.returnTo);
  }

  /** Stores that the member declined, for the app. @param event records it */
  async declined(
    response: Response,
    interaction: Interaction,
    description: string,
    event?: NewAuthEvent,
  ): Promise<void> {
    const result = { error: 'access_denied', error_description: description };
    await this.#store(interaction, result, new Decision(event));
    redirect(response, interaction.returnTo);
  }

  /**
   * Explains why a step is not found: after Back, a reload or a second click, it is one that ended, and the page says so.
   *
   * @param error of the library
   * @returns what to throw instead
   */
  async explain(error: unknown, uid: string): Promise<unknown> {
    if (!isStepGone(error)) return error;
    const params = await this.states.paramsOfCompleted(uid);
    const client = params && (await this.server.provider.Client.find(params.client_id as string));
    if (!client) return error;
    const [target] = formTargetsOf(params.redirect_uri);
    const href = client.clientUri ?? (target?.includes('//') ? target : undefined); // none for an app on the device
    const next = href === undefined ? {} : { next: { text: 'backToApp', href } as const };
    return new PageFault(410, 'finished', undefined, next, 'sign_in_expired');
  }

  async #store(interaction: Interaction, result: InteractionResults, decision: Decision): Promise<void> {
    this.database.current!.decision = decision;
    interaction.result = result;
    const seconds = interaction.exp - Math.floor(Date.now() / 1000);
    await interaction.save(seconds).catch(async (error: unknown) => {
      throw await this.explain(error, interaction.uid);
    });
  }
}
