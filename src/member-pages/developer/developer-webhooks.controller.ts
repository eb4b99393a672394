import { Controller, Get, Param, Post } from '@nestjs/common';
import { ApiKeysService } from '../../auth/api-keys/api-keys.service.js';
import { LimitReached } from '../../auth/owner.js';
import { ClientsService } from '../../clients/clients.service.js';
import { Config } from '../../config/config.js';
import { OperatorError } from '../../values/operator-error.js';
import { findEndpointFault } from '../../values/endpoint-urls.js';
import { MAX_OWN_WEBHOOKS, typesFor, WebhooksService } from '../../webhooks/webhooks.service.js';
import { FormSender, SentForms, Visitor, type Member, type Sender } from '../account/account-pages.js';
import type { FlashMessage, PageOf } from '../rendering/page-contents.js';
import { fieldText, nothingHere, ServesPages } from '../requests/page-requests.js';

/** Seconds during which the server also signs messages with the previous secret: a day. */
const OVERLAP_SECONDS = 86_400;

interface App {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly isValid: boolean;
  readonly credential: { readonly clientId: string } | { readonly keyId: string };
}

type Page = PageOf<'developer-webhooks'>;

type Place = Readonly<Record<'app' | 'webhook', string>>;

/** Webhooks of the member's apps and keys, if DEVELOPER_CONSOLE is on. Forms that create a secret require a recent sign-in. */
@Controller('developer/webhooks')
@ServesPages()
export class DeveloperWebhooksController {
  constructor(
    private readonly config: Config,
    private readonly forms: SentForms,
    private readonly clients: ClientsService,
    private readonly keys: ApiKeysService,
    private readonly webhooks: WebhooksService,
  ) {}

  @Get(':app')
  async list(@Visitor('developer') developer: Member, @Param('app') id: string): Promise<void> {
    await this.#show(developer, await this.#app(developer, id));
  }

  @Post(':app')
  async create(@FormSender('developer') developer: Sender, @Param('app') id: string): Promise<void> {
    const app = await this.#app(developer, id);
    const url = fieldText(developer.form.url).trim();
    const types = typesOf(app).filter((type) => [developer.form.types ?? []].flat().includes(type));
    const values = { url: url.slice(0, 2_000), types };
    const isReachable = findEndpointFault(url, this.config.production) === undefined;
    if (!isReachable || types.length === 0)
      return this.#show(developer, app, { values, fault: isReachable ? 'types' : 'url' }, 400);
    const wanted = { url, types, ...app.credential, actor: 'user', owner: developer.owner } as const;
    try {
      const { formId } = await this.forms.once(developer, (manager) => this.webhooks.create(wanted, manager));
      developer.redirect(`/developer/webhooks/${id}/secret?made=${formId}`);
    } catch (error) {
      if (error instanceof LimitReached) await this.#show(developer, app, { values, fault: 'full' }, 409);
      else if (error instanceof OperatorError) developer.redirect(pathOf(id), 'webhook-not-changed');
      else throw error;
    }
  }

  @Get(':app/secret')
  async madeSecret(@Visitor('developer') developer: Member, @Param('app') id: string): Promise<void> {
    const { name } = await this.#app(developer, id);
    const made = await this.forms.take<{ secret: string }>(developer);
    if (!made) developer.redirect(pathOf(id));
    else developer.send({ name: 'developer-made-secret', webhooks_of: { id, name }, secret: made.secret });
  }

  @Post(':app/:webhook/rotate')
  async rotate(@FormSender('developer') developer: Sender, @Param() place: Place): Promise<void> {
    const { app, webhook } = await this.#own(developer, place);
    const { owner } = developer;
    try {
      const { formId } = await this.forms.once(developer, async (manager) => ({
        secret: await this.webhooks.rotate(webhook, OVERLAP_SECONDS, 'user', owner, manager),
      }));
      developer.redirect(`/developer/webhooks/${app}/secret?made=${formId}`);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      developer.redirect(pathOf(app), 'webhook-not-changed');
    }
  }

  @Post(':app/:webhook/test')
  async test(@FormSender() developer: Sender, @Param() place: Place): Promise<void> {
    const { app, webhook } = await this.#own(developer, place);
    const { made } = await this.forms.once(developer, async (manager) => ({
      sent: await this.webhooks.queueTest(webhook, developer.owner, manager),
    }));
    developer.redirect(pathOf(app), made?.sent === false ? 'webhook-not-changed' : 'webhook-tested');
  }

  @Post(':app/:webhook/disable')
  async disable(@FormSender() developer: Sender, @Param() place: Place): Promise<void> {
    const { app, webhook } = await this.#own(developer, place);
    await this.webhooks.disable(webhook, 'user', developer.owner);
    developer.redirect(pathOf(app), 'webhook-disabled');
  }

  @Post(':app/:webhook/delete')
  async delete(@FormSender() developer: Sender, @Param() { app, webhook }: Place): Promise<void> {
    await this.#app(developer, app);
    let done: FlashMessage = 'webhook-deleted';
    await this.forms.once(developer, async (manager) => {
      if (!(await this.webhooks.delete(webhook, developer.owner, manager))) done = 'webhook-not-changed';
      return {};
    });
    developer.redirect(pathOf(app), done);
  }

  /** @throws UnknownClient, which pages show as 404, if the member has no app or key with this id */
  async #app({ owner }: Member, id: string): Promise<App> {
    const key = await this.keys.find(id, owner);
    if (key) {
      const isValid = key.status === 'active' || key.status === 'replaced';
      return { id, name: key.name, scopes: key.scopes, isValid, credential: { keyId: id } };
    }
    const { name, scopes, disabled_at } = await this.clients.find(id, owner);
    return { id, name, scopes, isValid: disabled_at === null, credential: { clientId: id } };
  }

  /** @throws PageFault 404 if the webhook does not belong to this app or key of the member */
  async #own({ owner }: Member, place: Place): Promise<Place> {
    const own = await this.webhooks.list(place.app, owner);
    if (!own.some(({ id }) => id === place.webhook)) throw nothingHere();
    return place;
  }

  async #show(
    developer: Member,
    app: App,
    { values = { url: '', types: typesOf(app) }, fault }: Partial<Pick<Page, 'values' | 'fault'>> = {},
    status = 200,
  ): Promise<void> {
    const { id } = app;
    const webhooks: Page['webhooks'][number][] = [];
    for (const webhook of await this.webhooks.list(id, developer.owner)) {
      const [last = null] = await this.webhooks.deliveries(webhook.id, developer.owner);
      const { origin, pathname } = new URL(webhook.url); // an endpoint's URL may have a secret in its query
      webhooks.push({ ...webhook, url: origin + pathname, last });
    }
    const types = app.isValid ? typesOf(app) : [];
    const page = { app: { id, name: app.name }, webhooks, types, values, fault, most: MAX_OWN_WEBHOOKS };
    developer.send({ name: 'developer-webhooks', ...page }, status);
  }
}

const typesOf = ({ scopes, credential }: App) =>
  typesFor(scopes, 'clientId' in credential ? 'client' : 'key');

const pathOf = (app: string) => `/developer/webhooks/${encodeURIComponent(app)}`;
