import { Controller, Get, Post, Res, type Type } from '@nestjs/common';
import type { Response } from 'express';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { Config } from '../../config/config.js';
import { pathOf, UpstreamSignIns, type SignInPage } from '../../federation/upstream-sign-ins.js';
import { queryOf } from '../../http/input/query.js';
import { Pages, redirect } from '../rendering/pages.js';
import { OwnForm, ServesPages, type Form } from '../requests/page-requests.js';
import { BrowserSessions, SignInForms, type SignInRejection } from '../sign-in/sign-in-steps.js';
import { AccountPages, Visitor, type Member } from './account-pages.js';

/** Makes the controller for signing in on an account or developer page: by password, passkey, or the external identity provider. */
export function signInController(page: SignInPage): Type {
  const path = pathOf(page);

  @Controller(path)
  @ServesPages()
  class SignInController {
    constructor(
      private readonly config: Config,
      private readonly account: AccountPages,
      private readonly pages: Pages,
      private readonly sessions: BrowserSessions,
      private readonly forms: SignInForms,
      private readonly upstream: UpstreamSignIns,
    ) {}

    @Get('upstream')
    async signInUpstream(@Res() response: Response): Promise<void> {
      const prompted = queryOf(response.req).has('other');
      // With `other`, the external identity provider must prompt; a member with a session here must authenticate again.
      const confirms = prompted && (await this.sessions.current(response)) !== undefined;
      const wishes = { prompted, maxAge: confirms ? 0 : undefined };
      this.pages.leaveFor(response, await this.upstream.begin(response, { account: page }, wishes));
    }

    @Get('confirm')
    confirm(@Visitor(page) { response, user: { username } }: Member): void {
      if (!this.config.localSignIn) redirect(response, `${path}/upstream?other=1`);
      else this.account.showSignIn(page, response, { username, lead: 'again', prompted: true });
    }

    @Post('sign-in')
    async signIn(@Res() response: Response, @OwnForm() form: Form): Promise<void> {
      if (!this.config.localSignIn) throw new PageFault(400, 'malformed');
      await this.#finish(response, await this.forms.withPassword(response, form, 'account'));
    }

    @Post('passkey/options')
    async passkeyOptions(@Res() response: Response, @OwnForm() _form: Form): Promise<void> {
      await this.forms.sendPasskeyOptions(response, path);
    }

    @Post('passkey')
    async signInWithPasskey(@Res() response: Response, @OwnForm() form: Form): Promise<void> {
      await this.#finish(response, await this.forms.withPasskey(response, form, path, 'account'));
    }

    async #finish(response: Response, result: SignedIn | SignInRejection): Promise<void> {
      if ('fault' in result) {
        this.account.showSignIn(page, response, result);
        return;
      }
      await this.sessions.signIn(response, result);
      redirect(response, path);
    }
  }
  return SignInController;
}
