import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { ApiKeysService, MOST_OWN_KEYS } from '../../../auth/api-keys/api-keys.service.js';
import type { KeyDetails } from '../../../auth/api-keys/api-keys.service.js';
import { DeveloperRequests, MOST_KEPT } from '../../../auth/usage/developer-requests.js';
import { Config } from '../../../config/config.js';
import { ClientsService, MOST_OWN_CLIENTS } from '../../admin/clients.service.js';
import type { ClientDetails } from '../../admin/clients.service.js';
import { queryOf } from '../../upstream/upstream-sign-ins.js';
import { AccountPages } from '../account-pages.js';
import { hostOf } from '../page-client.js';
import { Page } from '../page.decorator.js';
import { shownClient } from './client-form.js';
import { DeveloperPages, idOf, nothingHere } from './developer-pages.js';
import type { Developer } from './developer-pages.js';

/**
 * Overview of the member's own apps and keys, and of their requests: below `/developer`, only with DEVELOPER_CONSOLE. Uses the
 * services of the command line, limited here to what belongs to the member; anything else is 404.
 */
@Controller('developer')
@Page()
export class DeveloperController {
  readonly #clients: ClientsService;
  readonly #keys: ApiKeysService;

  constructor(
    config: Config,
    dataSource: DataSource,
    private readonly developers: DeveloperPages,
    private readonly account: AccountPages,
    private readonly requests: DeveloperRequests,
  ) {
    this.#clients = new ClientsService(dataSource, config);
    this.#keys = new ApiKeysService(dataSource, config);
  }

  @Get()
  async overview(@Req() request: Request, @Res() response: Response): Promise<void> {
    const developer = await this.developers.visitor('developer', request, response);
    if (!developer) return;
    const [clients, keys] = await this.#own(developer);
    this.developers.send(response, developer, {
      name: 'developer',
      ...this.account.takeDone(request, response),
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
  async lastRequests(@Req() request: Request, @Res() response: Response): Promise<void> {
    const developer = await this.developers.visitor('developer', request, response);
    if (!developer) return;
    const asked = queryOf(request).get('of');
    const of = asked === null ? null : idOf(asked);
    const [clients, keys] = await this.#own(developer);
    const apps = [
      ...clients.map(({ client_id: id, name }) => ({ id, name })),
      ...keys.map(({ id, name }) => ({ id, name })),
    ];
    if (of !== null && !apps.some(({ id }) => id === of)) throw nothingHere();
    const requests = await this.requests.last(developer.user.id, of);
    this.developers.send(response, developer, {
      name: 'developer-requests',
      of,
      apps,
      requests,
      most: MOST_KEPT,
    });
  }

  #own({ user, owner }: Developer): Promise<[ClientDetails[], KeyDetails[]]> {
    return Promise.all([this.#clients.list(owner), this.#keys.list({ userId: user.id, own: true })]);
  }
}

function isAccepted({ status }: KeyDetails): boolean {
  return status === 'active' || status === 'replaced';
}
