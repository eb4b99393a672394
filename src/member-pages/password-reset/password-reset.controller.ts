import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Csrf, DeviceCookies } from '../../accounts/browser-cookies.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type { PageOf } from '../rendering/page-contents.js';
import { Pages, redirect, RESET_PATH } from '../rendering/pages.js';
import { languageOf } from '../rendering/texts/texts.js';
import { fieldText, OwnForm, ServesPages, type Form } from '../requests/page-requests.js';
import { PasswordResets } from './password-resets.js';

type ResetPage = Omit<PageOf<'password-reset'>, 'name' | 'csrf'>;

/** Password reset by email: the page that requests the email, and the page that its link leads to; see {@link resetsPasswords}. */
@Controller('account')
@ServesPages()
export class PasswordResetController {
  constructor(
    private readonly csrf: Csrf,
    private readonly pages: Pages,
    private readonly resets: PasswordResets,
    private readonly devices: DeviceCookies,
  ) {}

  @Get('password-reset')
  ask(@Res() response: Response): void {
    this.#show(response, 200, { step: 'ask' });
  }

  /** Responds the same for every username. */
  @Post('password-reset/send')
  send(@Res() response: Response, @OwnForm() form: Form): void {
    const request = response.req;
    const language = languageOf(undefined, request.headers['accept-language']);
    this.resets.begin(fieldText(form.username), language, addressOf(request));
    redirect(response, `${RESET_PATH}/sent`);
  }

  @Get('password-reset/sent')
  sent(@Res() response: Response): void {
    this.#show(response, 200, { step: 'sent' });
  }

  /** Does not use up the link: programs that scan emails open the links in them. */
  @Get('new-password/:token')
  async choose(@Res() response: Response, @Param('token') token: string): Promise<void> {
    const member = await this.resets.memberOf(token);
    if (!member) this.#show(response, 410, { step: 'expired' });
    else this.#show(response, 200, { step: 'choose', token, username: member.username });
  }

  @Post('new-password/:token/set')
  async set(@Res() response: Response, @OwnForm() form: Form, @Param('token') token: string): Promise<void> {
    const request = response.req;
    const result = await withoutSlot(request, () =>
      this.resets.finish(token, fieldText(form.new_password), addressOf(request)),
    );
    if (typeof result === 'object') {
      // Whoever guesses at the account elsewhere does not keep its owner from signing in with the new password.
      this.devices.issue(request, response, result.userId);
      this.#show(response, 200, { step: 'done', passkeys: result.passkeys });
    } else if (result === 'expired') this.#show(response, 410, { step: 'expired' });
    else this.#show(response, 400, { step: 'choose', token, fault: result });
  }

  #show(response: Response, status: number, page: ResetPage): void {
    const csrf = this.csrf.token(response.req, response);
    this.pages.send(response, status, { name: 'password-reset', csrf, ...page });
  }
}
