import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { LimitReached } from '../../auth/owner.js';
import { CalendarLinks, LONGEST_NAME, MOST_LINKS } from '../../calendar/calendar-links.js';
import { Usage } from '../../auth/usage/usage.js';
import { addressOf } from '../../values/network.js';
import { asShown, isName } from '../../values/names.js';
import { AccountPages } from './account-pages.js';
import type { Member } from './account-pages.js';
import { FormBody, textOf } from './form-body.js';
import type { Form } from './form-body.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import type { CalendarPage } from './pages.js';
import { SentForms } from './sent-forms.js';

type MadeLink = NonNullable<CalendarPage['made']>;

/** Links with which calendar programs read a member's events. Only the member can create, list and revoke them. */
@Controller('account/calendar')
@Page()
export class AccountCalendarController {
  constructor(
    private readonly account: AccountPages,
    private readonly links: CalendarLinks,
    private readonly forms: SentForms,
    private readonly usage: Usage,
  ) {}

  @Get()
  async show(@Req() request: Request, @Res() response: Response): Promise<void> {
    const visitor = await this.account.visitor('calendar', request, response);
    if (!visitor) return;
    await this.usage.flush(); // so that what this process has counted is shown at once
    const { done } = this.account.takeDone(request, response);
    const made = await this.forms.take<MadeLink>(visitor, request);
    this.account.send(response, await this.#page(visitor, { done, made }));
  }

  /** The link is shown once, on the page to which this redirects; it is in no URL of ours and no cookie. */
  @Post('create')
  async create(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const member = await this.account.confirmedSender('calendar', request, response, form);
    if (!member) return;
    const name = asShown(textOf(form.name));
    if (!isName(name, LONGEST_NAME)) {
      this.account.send(response, await this.#page(member, { fault: 'name' }), 422);
      return;
    }
    const by = { actor: 'user', ip: addressOf(request) ?? null } as const;
    try {
      const { formId } = await this.forms.once<MadeLink>(member, form, async (manager) => ({
        name,
        url: await this.links.create(member.user.id, name, by, manager),
      }));
      this.forms.redirectToMade(response, '/account/calendar', formId);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      this.account.send(response, await this.#page(member, { fault: 'limit' }), 422);
    }
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

  async #page(member: Member, said: Pick<CalendarPage, 'done' | 'fault' | 'made'>): Promise<CalendarPage> {
    const { user, csrf } = member;
    const links = await this.links.list(user.id);
    return {
      name: 'calendar',
      csrf,
      user,
      confirm: await this.account.confirmationOf('calendar', member),
      create: '/account/calendar/create',
      longest: LONGEST_NAME,
      most: MOST_LINKS,
      links: links.map(({ id, ...link }) => ({ ...link, revoke: `/account/calendar/${id}/revoke` })),
      ...said,
    };
  }
}
