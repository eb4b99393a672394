import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { Usage } from '../../auth/usage/usage.js';
import { AccountPages, type Member, type Sender } from './account-pages.js';
import { FormSender, Visitor } from './member.decorators.js';
import { ServesPages } from '../requests/page.decorator.js';
import type { ScopeName } from '../rendering/page-contents.js';

/** A member may have any number of keys; this many are shown. */
const SHOWN = 100;

/** The reason given in the audit trail and by `pua keys show`. */
const REASON = 'revoked by the member';

/** Keys that an admin issued to act for a member: the member can see and revoke them. */
@Controller('account/keys')
@ServesPages()
export class AccountKeysController {
  constructor(
    private readonly account: AccountPages,
    private readonly credentials: CredentialCache,
    private readonly usage: Usage,
    private readonly keys: ApiKeysService,
  ) {}

  @Get()
  async show(@Res() response: Response, @Visitor('keys') visitor: Member): Promise<void> {
    const { user } = visitor;
    await this.usage.flush(); // so that what this process has counted is shown at once
    const accepted = (await this.keys.list({ userId: user.id })).filter(
      ({ status }) => status === 'active' || status === 'replaced',
    );
    this.account.send(response, visitor, {
      name: 'keys',
      ...this.account.takeDone(response),
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
    @Res() response: Response,
    @FormSender() { user, by }: Sender,
    @Param('key') id: string,
  ): Promise<void> {
    const revoked = await this.keys.revokeOf(user.id, id, REASON, by);
    this.credentials.revoke({ kind: 'key', id });
    this.account.redirectDone(response, '/account/keys', revoked ? 'key-revoked' : undefined);
  }
}
