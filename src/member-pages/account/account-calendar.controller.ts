import { Controller, Get, Param, Post } from '@nestjs/common';
import { LimitReached } from '../../auth/owner.js';
import { Usage } from '../../auth/usage/usage.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { CalendarLinks, LONGEST_NAME, MOST_LINKS } from '../../calendar/calendar-links.js';
import { asShown, isName } from '../../values/names.js';
import type { CalendarPage } from '../rendering/page-contents.js';
import { fieldText, ServesPages } from '../requests/page-requests.js';
import { FormSender, Visitor, type Member, type Sender } from './account-pages.js';
import { SentForms } from './sent-forms.js';

type MadeLink = NonNullable<CalendarPage['made']>;

/** Links with which calendar programs read a member's events. Only the member can create, list and revoke them. */
@Controller('account/calendar')
@ServesPages()
export class AccountCalendarController {
  constructor(
    private readonly links: CalendarLinks,
    private readonly forms: SentForms,
    private readonly usage: Usage,
  ) {}

  @Get()
  async show(@Visitor('calendar') visitor: Member): Promise<void> {
    await this.usage.flush(); // so that what this process has counted is shown at once
    await this.#show(visitor, { made: await this.forms.take<MadeLink>(visitor) });
  }

  /** The link is shown once, on the page to which this redirects; it is in no URL of ours and no cookie. */
  @Post('create')
  async create(@FormSender('calendar') member: Sender): Promise<void> {
    const name = asShown(fieldText(member.form.name));
    if (!isName(name, LONGEST_NAME)) {
      await this.#show(member, { fault: 'name' }, 422);
      return;
    }
    try {
      const { formId } = await this.forms.once<MadeLink>(member, async (manager) => ({
        name,
        url: await this.links.create(member.user.id, name, member.by, manager),
      }));
      member.redirect(`/account/calendar?made=${formId}`);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      await this.#show(member, { fault: 'limit' }, 422);
    }
  }

  @Post(':link/revoke')
  async revoke(@FormSender() member: Sender, @Param('link') link: string): Promise<void> {
    if (!/^[1-9]\d{0,14}$/.test(link)) throw new PageFault(400, 'malformed');
    const ended = await this.links.revoke(member.user.id, Number(link), member.by);
    member.redirect('/account/calendar', ended ? 'calendar-link-revoked' : undefined);
  }

  async #show(member: Member, said: Pick<CalendarPage, 'fault' | 'made'>, status = 200): Promise<void> {
    const page = {
      name: 'calendar',
      confirm: await member.confirmationOn('calendar'),
      longest: LONGEST_NAME,
      most: MOST_LINKS,
      links: await this.links.list(member.user.id),
      ...said,
    } as const;
    member.send(page, status);
  }
}
