import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CalendarLinks, LONGEST_NAME, MOST_LINKS } from '../../calendar/calendar-links.js';
import { Usage } from '../../auth/usage/usage.js';
import { addressOf } from '../../values/network.js';
import { asShown, isName } from '../../values/names.js';
import { AccountPages } from './account-pages.js';
import type { SignedInUser } from './browser-sessions.js';
import { FormBody, textOf } from './form-body.js';
import type { Form } from './form-body.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import type { CalendarPage } from './pages.js';

/** Links with which calendar programs read a member's events. Only the member can create, list and revoke them. */
@Controller('account/calendar')
@Page()
export class AccountCalendarController {
  constructor(
    private readonly account: AccountPages,
    private readonly links: CalendarLinks,
    private readonly usage: Usage,
  ) {}

  @Get()
  async show(@Req() request: Request, @Res() response: Response): Promise<void> {
    const visitor = await this.account.visitor('calendar', request, response);
    if (!visitor) return;
    await this.usage.flush(); // so that what this process has counted is shown at once
    const { done } = this.account.takeDone(request, response);
    this.account.send(response, await this.#page(visitor.user, visitor.csrf, { done }));
  }

  /** Shows the link once, in this response: it is in no URL and no cookie. */
  @Post('create')
  async create(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { user, csrf } = await this.account.sender(request, response, form);
    const name = asShown(textOf(form.name));
    if (!isName(name, LONGEST_NAME)) {
      this.account.send(response, await this.#page(user, csrf, { fault: 'name' }), 422);
      return;
    }
    const url = await this.links.create(user.id, name, { actor: 'user', ip: addressOf(request) ?? null });
    if (url === undefined) this.account.send(response, await this.#page(user, csrf, { fault: 'limit' }), 422);
    else this.account.send(response, await this.#page(user, csrf, { made: { name, url } }));
  }

  @Post(':link/revoke')
  async revoke(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('link') link: string,
  ): Promise<void> {
    const { user } = await this.account.sender(request, response, form);
    if (!/^[1-9]\d{0,14}$/.test(link)) throw new PageFault(400, 'malformed');
    const ended = await this.links.revoke(user.id, Number(link), {
      actor: 'user',
      ip: addressOf(request) ?? null,
    });
    this.account.redirectDone(response, '/account/calendar', ended ? 'calendar-link-revoked' : undefined);
  }

  async #page(
    user: SignedInUser,
    csrf: string,
    said: Pick<CalendarPage, 'done' | 'fault' | 'made'>,
  ): Promise<CalendarPage> {
    const links = await this.links.list(user.id);
    return {
      name: 'calendar',
      csrf,
      user,
      create: '/account/calendar/create',
      longest: LONGEST_NAME,
      most: MOST_LINKS,
      links: links.map(({ id, ...link }) => ({ ...link, revoke: `/account/calendar/${id}/revoke` })),
      ...said,
    };
  }
}
