import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { JWTPayload } from 'jose';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import { UpstreamMembers } from '../../accounts/upstream-members.js';
import { audited, recordEvent } from '../../audit/audit.js';
import { USE_ONCE } from '../../auth/access-tokens/use-once.js';
import { Config } from '../../config/config.js';
import { eitherOf, TokenKeys } from '../../crypto/token-keys.js';
import { isUnavailable } from '../../database/unavailable.js';
import { Logger } from '../../http/logger.js';
import { ConnectedApps } from '../admin/connected-apps.js';
import { BrowserSessions } from '../pages/browser-sessions.js';
import { FinishedSteps } from '../pages/finished-steps.js';
import { NOT_SIGNED_IN } from '../provider/strangers.js';
import { FormBody } from '../pages/form-body.js';
import type { Form } from '../pages/form-body.js';
import { Page } from '../pages/page.decorator.js';
import { Pages, redirect } from '../pages/pages.js';
import { AuthorizationServer } from '../provider/authorization-server.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { END_REMEMBERED_SECONDS } from '../storage/upstream-session.js';
import { OpenidProvider, UpstreamFault } from './openid-provider.js';
import { SignOuts } from './sign-outs.js';
import type { Purpose } from './upstream-sign-ins.js';
import { pathOf, queryOf, UpstreamSignIns } from './upstream-sign-ins.js';

/** The event in a logout token (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LOGOUT = 'http://schemas.openid.net/event/backchannel-logout';
/** Events meaning that the member is gone (OpenID RISC Profile 1.0 §2.2, §2.3), which a logout token may also contain. */
const GONE = ['account-disabled', 'account-purged'].map(
  (type) => `https://schemas.openid.net/secevent/risc/event-type/${type}`,
);

const TEXT = z.string().min(1);
/** What a logout token has to contain, and in which types (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LOGOUT_CLAIMS = z.object({
  sub: TEXT.optional(),
  sid: TEXT.optional(),
  jti: TEXT,
  events: z.looseObject({ [LOGOUT]: z.looseObject({}) }),
  nonce: z.undefined().optional(), // an ID token has one
});

/** How long the id of a logout token is kept, in seconds: longer than a token can be valid. */
const REMEMBERED_SECONDS = 600;

/**
 * Marks an end for sign-ins in progress: see {@link SessionAdapter}. $3: the keys of the token, which has no effect if it was used
 * before.
 */
const REMEMBER_END = `INSERT INTO oauth_state (key, model, expires_at)
SELECT key, 'ReplayDetection', now() + make_interval(secs => $2) FROM unnest($1::bytea[]) AS key
WHERE NOT EXISTS (SELECT FROM oauth_state WHERE oauth_state.key = ANY ($3::bytea[]) AND oauth_state.expires_at > now()) ORDER BY key
ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at`;

const END_BY_SESSION = `DELETE FROM oauth_sessions WHERE upstream_session_key IN ($1, $2) RETURNING user_id`;
const END_BY_SUBJECT = `DELETE FROM oauth_sessions WHERE upstream_subject_key IN ($1, $2) RETURNING user_id`;
/** Does not end a session that the provider's token attributes to another subject. */
const END_BY_BOTH = `DELETE FROM oauth_sessions
WHERE upstream_session_key IN ($1, $2) AND upstream_subject_key IN ($3, $4) RETURNING user_id`;

/** Where the platform's own login redirects back to and sends logout tokens, below `/sign-in`. */
@Controller('sign-in')
@Page()
export class UpstreamController {
  readonly #access: ConnectedApps;
  readonly #keys: TokenKeys;

  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly provider: OpenidProvider,
    private readonly signIns: UpstreamSignIns,
    private readonly signOuts: SignOuts,
    private readonly members: UpstreamMembers,
    private readonly steps: FinishedSteps,
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly pages: Pages,
    private readonly logger: Logger,
    private readonly dataSource: DataSource,
  ) {
    this.#access = new ConnectedApps(dataSource);
    this.#keys = new TokenKeys(config.secrets);
  }

  /** Handles the response to a sign-in, for an app or for an account page. */
  @Get('callback')
  async callback(@Req() request: Request, @Res() response: Response): Promise<void> {
    const begun = await this.signIns.take(request);
    const { purpose } = begun;
    const interaction =
      'interaction' in purpose ? await this.server.provider.Interaction.find(purpose.interaction) : undefined;
    // The interaction may meanwhile have expired, or have been completed in another tab.
    if (
      'interaction' in purpose &&
      (interaction?.prompt.name !== 'login' || interaction.result !== undefined)
    ) {
      redirect(response, `/interaction/${purpose.interaction}`); // says which of the two
      return;
    }
    const signedIn = await this.signIns.finish(request, response, begun);
    if (interaction && signedIn) await this.steps.signedIn(request, response, interaction, signedIn);
    else if (interaction) await this.steps.declined(response, interaction, NOT_SIGNED_IN);
    else {
      // Without a sign-in of our own, the page would lead straight back to the provider.
      if (!signedIn && !this.config.localSignIn) throw this.signIns.declined(purpose);
      if (signedIn) await this.sessions.signIn(request, response, signedIn);
      redirect(response, pathOf((purpose as Extract<Purpose, { account: unknown }>).account));
    }
  }

  /** Where the provider redirects after a sign-out: continues to the app that requested it, or shows a confirmation. */
  @Get('signed-out')
  signedOut(@Req() request: Request, @Res() response: Response): void {
    const target = this.signOuts.targetOf(queryOf(request).get('state'));
    if (target === undefined) this.pages.send(response, 200, { name: 'signed-out', client: null });
    else redirect(response, target);
  }

  /**
   * The provider has ended a session, or all sessions of a subject, and so their browser sessions here end (OpenID Connect
   * Back-Channel Logout 1.0). Apps keep their access, unless the token says that the member is gone.
   */
  @Post('backchannel-logout')
  async backchannelLogout(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    response.set('Cache-Control', 'no-store');
    try {
      if (!this.config.upstream) throw new UpstreamFault('wrong', 'there is no login of the platform');
      const token = form.logout_token;
      if (typeof token !== 'string') throw new UpstreamFault('wrong', 'logout_token is missing');
      await this.#logOut(await this.provider.verifyLogoutToken(token));
      response.status(200).end();
    } catch (error) {
      const away = isUnavailable(error) || (error instanceof UpstreamFault && error.kind === 'away');
      if (!away && !(error instanceof UpstreamFault)) throw error;
      const { message } = error as Error;
      this.logger.info({ request_id: request.context.id, reason: message }, 'a logout token was refused');
      const { retryAfter = 1 } = error as Partial<UpstreamFault>;
      if (away) response.set('Retry-After', String(retryAfter));
      response.status(away ? 503 : 400).json({
        error: away ? 'temporarily_unavailable' : 'invalid_request',
        error_description: away ? 'try again' : 'the logout token is not one that can be accepted',
        error_id: request.context.id,
      });
    }
  }

  async #logOut(token: JWTPayload): Promise<void> {
    const claims = LOGOUT_CLAIMS.safeParse(token);
    if (!claims.success)
      throw new UpstreamFault('wrong', `the claim ${claims.error.issues[0]!.path.join('.')} cannot be used`);
    const { sub, sid, jti, events } = claims.data;
    if (sub === undefined && sid === undefined)
      throw new UpstreamFault('wrong', 'the token names neither subject nor session');
    const used = this.#keys.everyKeyOf('UpstreamLogout', jti);
    const bySubject = sub === undefined ? undefined : eitherOf(this.signIns.keysOf('sub', sub));
    const bySession = sid === undefined ? undefined : eitherOf(this.signIns.keysOf('sid', sid));
    const isGone = sub !== undefined && GONE.some((type) => Object.hasOwn(events, type));
    const ends =
      bySession === undefined || isGone ? this.signIns.keysOf('sub', sub!) : this.signIns.keysOf('sid', sid!);
    // Before the rest, so that sign-ins that are not seen here see it.
    await this.database.rows(REMEMBER_END, [ends, END_REMEMBERED_SECONDS, used]);
    const named =
      isGone && this.config.upstream!.claim === 'sub' ? await this.members.find({ sub }) : undefined;
    await audited(this.dataSource, async (manager) => {
      if ((await manager.query<unknown[]>(USE_ONCE, [used, REMEMBERED_SECONDS])).length === 0)
        throw new UpstreamFault('wrong', 'the token was used before');
      const [ended] = await manager.query<[{ user_id: number }[], number]>(
        ...endOf(isGone ? undefined : bySession, bySubject),
      );
      const members = Map.groupBy(ended, ({ user_id }) => user_id);
      for (const [userId, { length: sessions }] of members)
        await recordEvent(manager, {
          type: 'session.ended',
          actor: 'system',
          userId,
          details: { sessions },
        });
      if (!isGone) return;
      for (const userId of new Set([...members.keys(), ...(named ? [named.id] : [])]))
        await this.#access.revokeAll(userId, { actor: 'system', ip: null }, manager);
    });
  }
}

/** The statement that ends the sessions, with its parameters. */
function endOf(
  session: readonly (Buffer | null)[] | undefined,
  subject: readonly (Buffer | null)[] | undefined,
): [statement: string, parameters: (Buffer | null)[]] {
  if (session && subject) return [END_BY_BOTH, [...session, ...subject]];
  return session ? [END_BY_SESSION, [...session]] : [END_BY_SUBJECT, [...subject!]];
}
