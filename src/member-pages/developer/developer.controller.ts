import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { ApiKeysService, MOST_OWN_KEYS, type KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import { DeveloperRequests, MOST_KEPT } from '../../auth/usage/developer-requests.js';
import { ClientsService, MOST_OWN_CLIENTS, type ClientDetails } from '../../clients/clients.service.js';
import { queryOf } from '../../http/input/raw-query.js';
import { AccountPages, type Member } from '../account/account-pages.js';
import { Visitor } from '../account/member.decorators.js';
import { hostOf } from '../../authorization-server/ports/page-client.js';
import { ServesPages } from '../requests/page.decorator.js';
import { shownClient } from './client-form.js';
import { checkedId, nothingHere } from './own.js';

/**
 * Overview of the member's own apps and keys, and of their requests: below `/developer`, only with DEVELOPER_CONSOLE. Uses the
 * services of the command line, limited here to what belongs to the member; anything else is 404.
 */
@Controller('developer')
@ServesPages()
export class DeveloperController {
  constructor(
    private readonly account: AccountPages,
    private readonly requests: DeveloperRequests,
    private readonly clients: ClientsService,
    private readonly keys: ApiKeysService,
  ) {}

  @Get()
  async overview(@Res() response: Response, @Visitor('developer') developer: Member): Promise<void> {
    const [clients, keys] = await this.#own(developer);
    this.account.send(response, developer, {
      name: 'developer',
      ...this.account.takeDone(response),
      clients: clients.map((client) => ({ ...shownClient(client), host: hostOf(client.redirect_uris[0]!) })),
      keys: keys.map((key) => ({
        id: key.id,
        name: key.name,
        environment: key.environment,
        last_four: key.last_four,
        scopes: key.scopes,
        status: key.status,
        accepted: isAccepted(key),
        ends_at: (key.revoked_at ?? key.expires_at)!,
        last_used_at: key.last_used_at,
      })),
      most: { clients: MOST_OWN_CLIENTS, keys: MOST_OWN_KEYS },
    });
  }

  @Get('requests')
  async lastRequests(@Res() response: Response, @Visitor('developer') developer: Member): Promise<void> {
    const asked = queryOf(response.req).get('of');
    const of = asked === null ? null : checkedId(asked);
    const [clients, keys] = await this.#own(developer);
    const apps = [
      ...clients.map(({ client_id: id, name }) => ({ id, name })),
      ...keys.map(({ id, name }) => ({ id, name })),
    ];
    if (of !== null && !apps.some(({ id }) => id === of)) throw nothingHere();
    const requests = await this.requests.last(developer.user.id, of);
    this.account.send(response, developer, {
      name: 'developer-requests',
      of,
      apps,
      requests,
      most: MOST_KEPT,
    });
  }

  #own({ user, owner }: Member): Promise<[ClientDetails[], KeyDetails[]]> {
    return Promise.all([this.clients.list(owner), this.keys.list({ userId: user.id, own: true })]);
  }
}

function isAccepted({ status }: KeyDetails): boolean {
  return status === 'active' || status === 'replaced';
}
