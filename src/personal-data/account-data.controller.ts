import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { recordAlone } from '../audit/audit.js';
import { Usage } from '../auth/usage/usage.js';
import { Logger } from '../http/logger.js';
import { leavePlace } from '../http/pipeline/request-context.js';
import { AccountPages } from '../oauth/pages/account-pages.js';
import type { Member } from '../oauth/pages/account-pages.js';
import { FormBody } from '../oauth/pages/form-body.js';
import type { Form } from '../oauth/pages/form-body.js';
import { Page } from '../oauth/pages/page.decorator.js';
import type { DataPage } from '../oauth/pages/pages.js';
import { addressOf } from '../values/network.js';
import { Downloads } from './downloads.js';
import { PersonalData } from './personal-data.js';

/** Everything that is held about a member, as a file. */
@Controller('account/data')
@Page()
export class AccountDataController {
  constructor(
    private readonly account: AccountPages,
    private readonly personalData: PersonalData,
    private readonly downloads: Downloads,
    private readonly dataSource: DataSource,
    private readonly usage: Usage,
    private readonly logger: Logger,
  ) {}

  @Get()
  async show(@Req() request: Request, @Res() response: Response): Promise<void> {
    const visitor = await this.account.visitor('data', request, response);
    if (visitor)
      this.#show(response, visitor, { confirm: await this.account.confirmationOf('data', visitor) });
  }

  /** A form with a token, not a link, so that no other site can make the server do this work. */
  @Post('download')
  async download(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const member = await this.account.confirmedSender('data', request, response, form);
    if (!member) return;
    const refused = await this.downloads.run(member.user.id, () => this.#send(request, response, member));
    if (refused === undefined) return;
    response.set('Retry-After', String(RETRY_AFTER_SECONDS));
    this.#show(response, member, { fault: refused }, STATUSES[refused]);
  }

  async #send(request: Request, response: Response, { user }: Member): Promise<void> {
    await recordAlone((text, values) => this.dataSource.query(text, values), {
      type: 'user.exported',
      actor: 'user',
      userId: user.id,
      ip: addressOf(request) ?? null,
    });
    await this.usage.flush(); // so that what this process has counted is in the file
    leavePlace(request.context); // from here on, it mostly waits for its reader
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
      this.logger.warn({ err: error, request_id: request.context.id }, 'a member’s data were not sent whole');
    }
  }

  #show(
    response: Response,
    { user, csrf }: Member,
    said: Pick<DataPage, 'confirm' | 'fault'>,
    status = 200,
  ): void {
    this.account.send(
      response,
      { name: 'data', csrf, user, download: '/account/data/download', ...said },
      status,
    );
  }
}

const STATUSES = { running: 429, full: 503 } as const;
/** After a refusal. */
const RETRY_AFTER_SECONDS = 10;
