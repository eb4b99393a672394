import { Controller, Get, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { AuthorizationServer } from '../../authorization-server/authorization-server.js';
import { NOT_SIGNED_IN } from '../../authorization-server/middleware.js';
import { Config } from '../../config/config.js';
import { isUnavailable } from '../../database/postgres/unavailable.js';
import { UpstreamFault } from '../../federation/openid-provider.js';
import { SignOuts } from '../../federation/sign-outs.js';
import { pathOf, UpstreamSignIns } from '../../federation/upstream-sign-ins.js';
import { queryOf } from '../../http/input/query.js';
import { Logger } from '../../runtime/logger.js';
import { Pages, redirect } from '../rendering/pages.js';
import { FormBody, ServesPages, type Form } from '../requests/page-requests.js';
import { BrowserSessions } from '../sign-in/sign-in-steps.js';

/** Receives the external identity provider's redirects and logout tokens, below `/sign-in`. */
@Controller('sign-in')
@ServesPages()
export class UpstreamController {
  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly signIns: UpstreamSignIns,
    private readonly signOuts: SignOuts,
    private readonly sessions: BrowserSessions,
    private readonly pages: Pages,
    private readonly logger: Logger,
  ) {}

  @Get('callback')
  async callback(@Res() response: Response): Promise<void> {
    const begun = await this.signIns.take(response.req);
    const { purpose } = begun;
    if ('account' in purpose) {
      const signedIn = await this.signIns.finish(response, begun);
      // Without a local sign-in, the account page would redirect to the external identity provider again.
      if (!signedIn && !this.config.localSignIn) throw this.signIns.fault('declined', purpose);
      if (signedIn) await this.sessions.signIn(response, signedIn);
      redirect(response, pathOf(purpose.account));
      return;
    }
    const interaction = await this.server.provider.Interaction.find(purpose.interaction);
    // The step may have expired, or another tab may have completed it.
    if (interaction?.prompt.name !== 'login' || interaction.result !== undefined) {
      redirect(response, `/interaction/${purpose.interaction}`); // that page explains what happened
      return;
    }
    const signedIn = await this.signIns.finish(response, begun);
    if (signedIn) await this.sessions.finishSignIn(response, interaction, signedIn);
    else await this.sessions.decline(response, interaction, NOT_SIGNED_IN);
  }

  /** Continues after a sign-out at the external identity provider: redirects to the app in `state`, or shows the signed-out page. */
  @Get('signed-out')
  signedOut(@Res() response: Response): void {
    const target = this.signOuts.targetOf(queryOf(response.req).get('state'));
    if (target === undefined) this.pages.send(response, 200, { name: 'signed-out', client: null });
    else this.pages.leaveFor(response, target);
  }

  @Post('backchannel-logout')
  async backchannelLogout(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    response.set('Cache-Control', 'no-store');
    try {
      if (!this.config.upstream)
        throw new UpstreamFault('wrong', 'no external identity provider is configured');
      const token = form.logout_token;
      if (typeof token !== 'string') throw new UpstreamFault('wrong', 'logout_token is missing');
      await this.signOuts.redeem(token);
      response.status(200).end();
    } catch (error) {
      const away = isUnavailable(error) || (error instanceof UpstreamFault && error.kind === 'away');
      if (!away && !(error instanceof UpstreamFault)) throw error;
      const { id } = response.req.context;
      this.logger.info({ request_id: id, reason: (error as Error).message }, 'a logout token was rejected');
      const { retryAfter = 1 } = error as Partial<UpstreamFault>;
      if (away) response.set('Retry-After', String(retryAfter));
      response.status(away ? 503 : 400).json({
        error: away ? 'temporarily_unavailable' : 'invalid_request',
        error_description: away ? 'try again' : 'the logout token is invalid',
        error_id: id,
      });
    }
  }
}
