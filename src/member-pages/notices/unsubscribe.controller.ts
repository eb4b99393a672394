import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { addressOf } from '../../values/network.js';
import { Pages } from '../rendering/pages.js';
import { nothingHere, ServesPages } from '../requests/page-requests.js';
import { NoticeChoices } from './notice-choices.js';

/** The page of a notice email's unsubscribe link, and one-click unsubscribe (RFC 8058). Neither requires a sign-in. */
@Controller('account/unsubscribe')
@ServesPages()
export class UnsubscribeController {
  constructor(
    private readonly pages: Pages,
    private readonly choices: NoticeChoices,
  ) {}

  /** Shows a page, but changes nothing, since email scanners open links. */
  @Get(':token')
  show(@Res() response: Response, @Param('token') token: string): void {
    this.#send(response, token, false);
  }

  @Post(':token')
  async unsubscribe(@Res() response: Response, @Param('token') token: string): Promise<void> {
    const { userId, notice } = this.#read(token);
    await this.choices.mute(userId, notice, addressOf(response.req) ?? null);
    this.#send(response, token, true);
  }

  #read(token: string) {
    const found = this.choices.read(token);
    if (!found) throw nothingHere();
    return found;
  }

  #send(response: Response, token: string, done: boolean): void {
    this.pages.send(response, 200, { name: 'unsubscribe', notice: this.#read(token).notice, token, done });
  }
}
