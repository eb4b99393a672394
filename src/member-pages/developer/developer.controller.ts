import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  ApiKeysService,
  MOST_OWN_KEYS,
  type KeyDetails,
  type NewKey,
} from '../../auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { LimitReached } from '../../auth/owner.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import { DeveloperRequests, MOST_KEPT } from '../../auth/usage/developer-requests.js';
import { hostOf } from '../../authorization-server/ports/page-client.js';
import { ClientsService, MOST_OWN_CLIENTS, type ClientDetails } from '../../clients/clients.service.js';
import { Config } from '../../config/config.js';
import { queryOf } from '../../http/input/query.js';
import { OperatorError } from '../../values/operator-error.js';
import { asShown, isName } from '../../values/names.js';
import { AccountPages, FormSender, Visitor, type Member, type Sender } from '../account/account-pages.js';
import { SentForms } from '../account/sent-forms.js';
import type { PageOf } from '../rendering/page-contents.js';
import { redirect } from '../rendering/pages.js';
import { fieldText } from '../requests/form-body.js';
import { ServesPages } from '../requests/page.decorator.js';
import { shownClient } from './client-form.js';
import { checkedId, hideUnknown, nothingHere } from './own.js';

/** The lifetimes offered for keys, in days. */
const KEY_DAYS: readonly number[] = [1, 7, 30, 90];
const DAY_SECONDS = 86_400;
const MADE_PATH = '/developer/made-key';

type MadeKey = Awaited<ReturnType<ApiKeysService['create']>>;

/**
 * Overview of the member's own apps and keys, and of their requests, and where they create keys: below `/developer`, only with
 * DEVELOPER_CONSOLE. Uses the services of the command line, limited here to what belongs to the member; anything else is 404. Making a
 * key requires a recent sign-in, so that nobody can do it in an abandoned browser.
 */
@Controller('developer')
@ServesPages()
export class DeveloperController {
  constructor(
    private readonly config: Config,
    private readonly account: AccountPages,
    private readonly forms: SentForms,
    private readonly requests: DeveloperRequests,
    private readonly credentials: CredentialCache,
    private readonly clients: ClientsService,
    private readonly keys: ApiKeysService,
  ) {}

  @Get()
  async overview(@Res() response: Response, @Visitor('developer') developer: Member): Promise<void> {
    const [clients, keys] = await this.#own(developer);
    this.account.send(response, developer, {
      name: 'developer',
      clients: clients.map((client) => ({ ...shownClient(client), host: hostOf(client.redirect_uris[0]!) })),
      keys: keys.map((key) => ({
        ...key,
        accepted: key.status === 'active' || key.status === 'replaced',
        ends_at: (key.revoked_at ?? key.expires_at)!,
      })),
      most: { clients: MOST_OWN_CLIENTS, keys: MOST_OWN_KEYS },
    });
  }

  @Get('requests')
  async lastRequests(@Res() response: Response, @Visitor('developer') developer: Member): Promise<void> {
    const asked = queryOf(response.req).get('of');
    const of = asked === null ? null : checkedId(asked);
    const [clients, keys] = await this.#own(developer);
    const apps = [...clients.map(({ client_id: id, name }) => ({ id, name })), ...keys];
    if (of !== null && !apps.some(({ id }) => id === of)) throw nothingHere();
    const requests = await this.requests.last(developer.user.id, of);
    const page = { name: 'developer-requests', of, apps, requests, most: MOST_KEPT } as const;
    this.account.send(response, developer, page);
  }

  #own({ user, owner }: Member): Promise<[ClientDetails[], KeyDetails[]]> {
    return Promise.all([this.clients.list(owner), this.keys.list({ userId: user.id, own: true })]);
  }

  @Get('new-key')
  async newKey(@Res() response: Response, @Visitor('developer/new-key') developer: Member): Promise<void> {
    const confirmation = await this.account.confirmationOf('developer/new-key', developer);
    if (confirmation === undefined)
      this.#showForm(response, developer, { values: { name: '', scopes: [], days: 30 } });
    else redirect(response, confirmation);
  }

  /** Shows the key that was just made or rotated, this once. */
  @Get('made-key')
  async madeKey(@Res() response: Response, @Visitor('developer') developer: Member): Promise<void> {
    const made = await this.forms.take<MadeKey>(developer, response.req);
    const call = `${this.config.publicUrl}/api/public/credential`;
    if (made)
      this.account.send(response, developer, { name: 'developer-made-key', key: made.key, try: call });
    else redirect(response, '/developer');
  }

  @Post('keys')
  async makeKey(
    @Res() response: Response,
    @FormSender('developer/new-key') developer: Sender,
  ): Promise<void> {
    const { form } = developer;
    const name = asShown(fieldText(form.name));
    const scopes = ALL_SCOPES.filter((scope) => [form.scopes ?? []].flat().includes(scope));
    const days = Number(fieldText(form.days));
    const values = { name: name.slice(0, 200), scopes, days };
    if (!isName(name) || !KEY_DAYS.includes(days)) {
      this.#showForm(response, developer, { values, fault: 'bad' }, 400);
      return;
    }
    const wanted: NewKey = {
      userId: developer.user.id,
      name,
      scopes,
      environment: this.config.production ? 'live' : 'test',
      cidrs: [],
      expiresInSeconds: days * DAY_SECONDS,
      actor: 'user',
      owner: developer.owner,
    };
    try {
      const { formId } = await this.forms.once<MadeKey>(developer, (manager) =>
        this.keys.create(wanted, manager),
      );
      this.forms.redirectToMade(response, MADE_PATH, formId);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      this.#showForm(response, developer, { values, fault: 'full' }, 409);
    }
  }

  /** Replaces a key, which ends at once. */
  @Post('keys/:key/rotate')
  async rotateKey(
    @Res() response: Response,
    @FormSender('developer') developer: Sender,
    @Param('key') id: string,
  ): Promise<void> {
    const { owner } = developer;
    if (!(await this.keys.find(checkedId(id), owner))) throw nothingHere();
    try {
      const { formId } = await this.forms.once<MadeKey>(developer, (manager) =>
        this.keys.rotate(id, 0, 'user', owner, manager),
      );
      this.credentials.revoke({ kind: 'key', id });
      this.forms.redirectToMade(response, MADE_PATH, formId);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      this.account.redirectDone(response, '/developer', 'key-not-rotated');
    }
  }

  @Post('keys/:key/revoke')
  async revokeKey(
    @Res() response: Response,
    @FormSender() { owner }: Sender,
    @Param('key') id: string,
  ): Promise<void> {
    await this.keys.revoke(checkedId(id), 'by the member who made it', 'user', owner).catch(hideUnknown);
    this.credentials.revoke({ kind: 'key', id });
    this.account.redirectDone(response, '/developer', 'key-revoked');
  }

  #showForm(
    response: Response,
    developer: Member,
    said: Pick<PageOf<'developer-key'>, 'values' | 'fault'>,
    status = 200,
  ): void {
    const offered = {
      name: 'developer-key',
      scopes: ALL_SCOPES,
      days: KEY_DAYS,
      most: MOST_OWN_KEYS,
    } as const;
    this.account.send(response, developer, { ...offered, ...said }, status);
  }
}
