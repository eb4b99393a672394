import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { LimitReached } from '../../auth/owner.js';
import { CalendarLinks, LONGEST_NAME, MOST_LINKS } from '../../calendar/calendar-links.js';
import { Usage } from '../../auth/usage/usage.js';
import { asShown, isName } from '../../values/names.js';
import { AccountPages, FormSender, Visitor, type Member, type Sender } from './account-pages.js';
import { fieldText } from '../requests/form-body.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { ServesPages } from '../requests/page.decorator.js';
import type { CalendarPage } from '../rendering/page-contents.js';
import { SentForms } from './sent-forms.js';

type MadeLink = NonNullable<CalendarPage['made']>;

/** Links with which calendar programs read a member's events. Only the member can create, list and revoke them. */
@Controller('account/calendar')
@ServesPages()
export class AccountCalendarController {
  constructor(
    private readonly account: AccountPages,
    private readonly links: CalendarLinks,
    private readonly forms: SentForms,
    private readonly usage: Usage,
  ) {}

  @Get()
  async show(@Res() response: Response, @Visitor('calendar') visitor: Member): Promise<void> {
    await this.usage.flush(); // so that what this process has counted is shown at once
    const made = await this.forms.take<MadeLink>(visitor, response.req);
    await this.#show(response, visitor, { made });
  }

  /** The link is shown once, on the page to which this redirects; it is in no URL of ours and no cookie. */
  @Post('create')
  async create(@Res() response: Response, @FormSender('calendar') member: Sender): Promise<void> {
    const name = asShown(fieldText(member.form.name));
    if (!isName(name, LONGEST_NAME)) {
      await this.#show(response, member, { fault: 'name' }, 422);
      return;
    }
    try {
      const { formId } = await this.forms.once<MadeLink>(member, async (manager) => ({
        name,
        url: await this.links.create(member.user.id, name, member.by, manager),
      }));
      this.forms.redirectToMade(response, '/account/calendar', formId);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      await this.#show(response, member, { fault: 'limit' }, 422);
    }
  }

  @Post(':link/revoke')
  async revoke(
    @Res() response: Response,
    @FormSender() { user, by }: Sender,
    @Param('link') link: string,
  ): Promise<void> {
    if (!/^[1-9]\d{0,14}$/.test(link)) throw new PageFault(400, 'malformed');
    const ended = await this.links.revoke(user.id, Number(link), by);
    this.account.redirectDone(response, '/account/calendar', ended ? 'calendar-link-revoked' : undefined);
  }

  async #show(
    response: Response,
    member: Member,
    said: Pick<CalendarPage, 'fault' | 'made'>,
    status = 200,
  ): Promise<void> {
    const page = {
      name: 'calendar',
      confirm: await this.account.confirmationOf('calendar', member),
      longest: LONGEST_NAME,
      most: MOST_LINKS,
      links: await this.links.list(member.user.id),
      ...said,
    } as const;
    this.account.send(response, member, page, status);
  }
}
