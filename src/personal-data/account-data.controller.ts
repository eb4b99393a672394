import { Controller, Get, Post } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { recordAlone } from '../audit/audit.js';
import { Usage } from '../auth/usage/usage.js';
import { Logger } from '../http/logger.js';
import { leaveSlot } from '../http/pipeline/request-context.js';
import { FormSender, Visitor, type Member, type Sender } from '../member-pages/account/account-pages.js';
import { ServesPages } from '../member-pages/requests/page-requests.js';
import { Downloads } from './downloads.js';
import { PersonalData } from './personal-data.js';

/** Everything that is held about a member, as a file. */
@Controller('account/data')
@ServesPages()
export class AccountDataController {
  constructor(
    private readonly personalData: PersonalData,
    private readonly downloads: Downloads,
    private readonly dataSource: DataSource,
    private readonly usage: Usage,
    private readonly logger: Logger,
  ) {}

  @Get()
  async show(@Visitor('data') visitor: Member): Promise<void> {
    visitor.send({ name: 'data', confirm: await visitor.confirmationOn('data') });
  }

  /** A form with a token, not a link, so that no other site can make the server do this work. */
  @Post('download')
  async download(@FormSender('data') member: Sender): Promise<void> {
    const fault = await this.downloads.run(member.user.id, () => this.#send(member));
    if (fault === undefined) return;
    member.response.set('Retry-After', String(RETRY_AFTER_SECONDS));
    member.send({ name: 'data', fault }, STATUSES[fault]);
  }

  async #send({ response, user, by }: Member): Promise<void> {
    const { context } = response.req;
    await recordAlone((text, values) => this.dataSource.query(text, values), {
      ...by,
      type: 'user.exported',
      userId: user.id,
    });
    await this.usage.flush(); // so that what this process has counted is in the file
    leaveSlot(context); // from here on, it mostly waits for its reader
    const pieces = this.personalData.of(user.id);
    const first = await pieces.next(); // a failure before the first byte is an error page
    if (response.headersSent) return; // the deadline was first
    response
      .status(200)
      .set('Content-Type', 'application/json; charset=utf-8')
      .set('Content-Disposition', `attachment; filename="member-${user.id}.json"`);
    response.write(first.value);
    try {
      await this.downloads.send(response, pieces);
    } catch (error) {
      // The connection is cut, so that nobody mistakes a part of the file for the whole.
      this.logger.warn({ err: error, request_id: context.id }, 'a member’s data were not sent whole');
    }
  }
}

const STATUSES = { running: 429, full: 503 } as const;
/** After a refusal. */
const RETRY_AFTER_SECONDS = 10;
