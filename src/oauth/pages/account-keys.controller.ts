import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { Usage } from '../../auth/usage/usage.js';
import { Config } from '../../config/config.js';
import { addressOf } from '../../values/network.js';
import { AccountPages } from './account-pages.js';
import { FormBody } from './form-body.js';
import type { Form } from './form-body.js';
import { Page } from './page.decorator.js';
import type { ScopeName } from './pages.js';

/** A member may have any number of keys; this many are shown. */
const SHOWN = 100;

/** The reason given in the audit trail and by `pua keys show`. */
const REASON = 'revoked by the member';

/** Keys that an admin issued to act for a member: the member can see and revoke them. */
@Controller('account/keys')
@Page()
export class AccountKeysController {
  readonly #keys: ApiKeysService;

  constructor(
    config: Config,
    dataSource: DataSource,
    private readonly account: AccountPages,
    private readonly credentials: CredentialCache,
    private readonly usage: Usage,
  ) {
    this.#keys = new ApiKeysService(dataSource, config);
  }

  @Get()
  async show(@Req() request: Request, @Res() response: Response): Promise<void> {
    const visitor = await this.account.visitor('keys', request, response);
    if (!visitor) return;
    const { user, csrf } = visitor;
    await this.usage.flush(); // so that what this process has counted is shown at once
    const accepted = (await this.#keys.list({ userId: user.id })).filter(
      ({ status }) => status === 'active' || status === 'replaced',
    );
    this.account.send(response, {
      name: 'keys',
      csrf,
      user,
      ...this.account.takeDone(request, response),
      keys: accepted.slice(0, SHOWN).map((key) => ({
        name: key.name,
        prefix: `pua_${key.environment}_${key.id}`,
        scopes: key.scopes as ScopeName[],
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        expires_at: key.expires_at,
        revoke: `/account/keys/${key.id}/revoke`,
      })),
      more: Math.max(0, accepted.length - SHOWN),
    });
  }

  @Post(':key/revoke')
  async revoke(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('key') id: string,
  ): Promise<void> {
    const { user } = await this.account.sender(request, response, form);
    const by = { actor: 'user', ip: addressOf(request) ?? null } as const;
    const revoked = await this.#keys.revokeOf(user.id, id, REASON, by);
    this.credentials.revoke({ kind: 'key', id });
    this.account.redirectDone(response, '/account/keys', revoked ? 'key-revoked' : undefined);
  }
}
