import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  ApiKeysService,
  MAX_OWN_KEYS,
  type KeyDetails,
  type NewKey,
} from '../../auth/api-keys/api-keys.service.js';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { LimitReached, type Owner } from '../../auth/owner.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import { DeveloperRequests, MAX_KEPT } from '../../auth/usage/developer-requests.js';
import { hostOf } from '../../authorization-server/ports.js';
import { ClientFault, redirectUriFault } from '../../clients/client-rules.js';
import { ClientsService, MAX_OWN_CLIENTS, type ClientDetails } from '../../clients/clients.service.js';
import { Config } from '../../config/config.js';
import { queryOf } from '../../http/input/query.js';
import { asShown, isName } from '../../values/string-rules.js';
import { OperatorError } from '../../values/operator-error.js';
import { UnknownMessage, WebhooksService } from '../../webhooks/webhooks.service.js';
import {
  AccountPages,
  FormSender,
  SentForms,
  Visitor,
  type Member,
  type Sender,
} from '../account/account-pages.js';
import type { AppWebhook, ClientForm, FlashMessage, PageOf } from '../rendering/page-contents.js';
import { fill, chooseLanguage, sentence, textsIn } from '../rendering/wording.js';
import { fieldText, nothingHere, ServesPages, UploadBody } from '../requests/page-requests.js';
import {
  readForm,
  EMPTY_FORM,
  fillForm,
  hasSecret,
  splitLines,
  shownClient,
  parseForm,
} from './client-form.js';

const KEY_DAYS: readonly number[] = [1, 7, 30, 90];
const DAY_SECONDS = 86_400;
const MAX_WEBHOOKS = 10;

type MadeKey = Awaited<ReturnType<ApiKeysService['create']>>;

/** The member's apps, keys and requests, if DEVELOPER_CONSOLE is on. Forms that create a key or secret require a recent sign-in. */
@Controller('developer')
@ServesPages()
export class DeveloperController {
  constructor(
    private readonly config: Config,
    private readonly account: AccountPages,
    private readonly forms: SentForms,
    private readonly requests: DeveloperRequests,
    private readonly revocations: RevocationChannel,
    private readonly clients: ClientsService,
    private readonly keys: ApiKeysService,
    private readonly webhooks: WebhooksService,
  ) {}

  @Get()
  async overview(@Visitor('developer') developer: Member): Promise<void> {
    const [clients, keys] = await this.#own(developer);
    developer.send({
      name: 'developer',
      clients: clients.map((client) => ({
        ...shownClient(client, this.config.reviewsApps),
        host: hostOf(client.redirect_uris[0]!),
      })),
      keys: keys.map((key) => ({
        ...key,
        accepted: key.status === 'active' || key.status === 'replaced',
        ends_at: (key.revoked_at ?? key.expires_at)!,
      })),
      most: { clients: MAX_OWN_CLIENTS, keys: MAX_OWN_KEYS },
    });
  }

  @Get('requests')
  async lastRequests(@Visitor('developer') developer: Member): Promise<void> {
    const of = queryOf(developer.response.req).get('of');
    const [clients, keys] = await this.#own(developer);
    const apps = [...clients.map(({ client_id: id, name }) => ({ id, name })), ...keys];
    if (of !== null && !apps.some(({ id }) => id === of)) throw nothingHere();
    const requests = await this.requests.last(developer.user.id, of);
    const use = await this.requests.use(developer.user.id, of);
    developer.send({ name: 'developer-requests', of, apps, use, requests, most: MAX_KEPT });
  }

  #own({ user, owner }: Member): Promise<[ClientDetails[], KeyDetails[]]> {
    return Promise.all([this.clients.list(owner), this.keys.list({ userId: user.id, own: true })]);
  }

  @Get('new-client')
  async newClient(@Visitor('developer') developer: Member): Promise<void> {
    await this.#showClient(developer, null, EMPTY_FORM);
  }

  @Post('clients')
  async register(@FormSender() developer: Sender): Promise<void> {
    const { owner, form } = developer;
    const values = readForm(form);
    await this.#orShowFault(developer, null, values, async () => {
      const { made } = await this.forms.once(developer, async (manager) => {
        const wanted = {
          ...parseForm(values, this.#profilesFor()),
          type: values.type,
          actor: 'user',
          owner,
        } as const;
        return { id: await this.clients.create(wanted, manager) };
      });
      developer.redirect(`/developer/clients/${made!.id}`, 'app-registered');
    });
  }

  /** Checks redirect URIs for the form's script while the developer types them. */
  @Post('redirect-uris')
  checkRedirectUris(@FormSender() { form, response }: Sender): void {
    const { faults } = textsIn(chooseLanguage(undefined, response.req.headers)).developer;
    const { type } = readForm(form);
    const found = splitLines(fieldText(form.redirect_uris)).flatMap((uri) => {
      const fault = redirectUriFault(uri, type, this.config.production);
      return fault ? sentence(fill(faults[fault], { value: uri.slice(0, 200) })) : [];
    });
    response.status(200).json({ faults: found });
  }

  @Get('clients/:client')
  async client(@Visitor('developer') developer: Member, @Param('client') id: string): Promise<void> {
    const client = await this.clients.find(id, developer.owner);
    await this.#showClient(developer, client, fillForm(client));
  }

  @Post('clients/:client')
  async change(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    const { owner, form } = developer;
    const client = await this.clients.find(id, owner);
    const values = { ...readForm(form), type: client.type };
    await this.#orShowFault(developer, client, values, async () => {
      const { jwks, ...wanted } = parseForm(values, this.#profilesFor(client));
      // If the form has no keys, the app keeps its current keys, unless a secret replaces them.
      const keys = jwks || wanted.secret_auth_method ? { jwks } : {};
      await this.clients.update(id, () => ({ ...wanted, ...keys }), 'user', owner);
      this.#clientChanged(developer, id, 'app-changed');
    });
  }

  @Post('clients/:client/logo')
  async changeLogo(@Res() response: Response, @UploadBody() form: FormData, @Param('client') id: string) {
    const [csrf, file] = [form.get('csrf'), form.get('logo')];
    const developer = await this.account.sender(response, typeof csrf === 'string' ? { csrf } : {});
    const client = await this.clients.find(id, developer.owner);
    const logo = file instanceof File ? Buffer.from(await file.arrayBuffer()) : Buffer.alloc(0);
    await this.#orShowFault(developer, client, fillForm(client), async () => {
      await this.clients.update(id, () => ({ logo }), 'user', developer.owner);
      this.#clientChanged(developer, id, 'app-changed');
    });
  }

  @Post('clients/:client/remove-logo')
  async removeLogo(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    await this.clients.update(id, () => ({ logo: null }), 'user', developer.owner);
    this.#clientChanged(developer, id, 'app-changed');
  }

  @Post('clients/:client/rotate-secret')
  async rotateSecret(@FormSender('developer') developer: Sender, @Param('client') id: string): Promise<void> {
    if (!hasSecret(await this.clients.find(id, developer.owner))) throw nothingHere();
    const lifetime = { overlapSeconds: DAY_SECONDS, expiresInSeconds: null };
    const { formId } = await this.forms.once(developer, async (manager) => ({
      id,
      secret: await this.clients.rotateSecret(id, lifetime, 'user', developer.owner, manager),
    }));
    this.revocations.announce({ kind: 'client', id });
    developer.redirect(`/developer/made-secret?made=${formId}`);
  }

  @Get('made-secret')
  async madeSecret(@Visitor('developer') developer: Member): Promise<void> {
    const made = await this.forms.take<{ id: string; secret: string }>(developer);
    if (made) developer.send({ name: 'developer-made-secret', client_id: made.id, secret: made.secret });
    else developer.redirect('/developer');
  }

  @Post('clients/:client/disable')
  async disable(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    await this.clients.setDisabled(id, true, 'user', developer.owner);
    this.#clientChanged(developer, id, 'app-disabled');
  }

  @Post('clients/:client/enable')
  async enable(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    await this.clients.setDisabled(id, false, 'user', developer.owner);
    this.#clientChanged(developer, id, 'app-enabled');
  }

  @Post('clients/:client/delete')
  async delete(@FormSender() developer: Sender, @Param('client') id: string): Promise<void> {
    await this.forms.once(developer, async (manager) => ({
      grants: await this.clients.delete(id, 'user', developer.owner, manager),
    }));
    this.#clientChanged(developer, id, 'app-deleted', '/developer');
  }

  /** Announces the change, which removes the app from this process's cache, and redirects with a notice. */
  #clientChanged(developer: Member, id: string, done: FlashMessage, path = `/developer/clients/${id}`): void {
    this.revocations.announce({ kind: 'client', id });
    developer.redirect(path, done);
  }

  async #orShowFault(
    developer: Member,
    client: ClientDetails | null,
    values: ClientForm,
    change: () => Promise<void>,
  ): Promise<void> {
    try {
      await change();
    } catch (error) {
      if (error instanceof ClientFault) await this.#showClient(developer, client, values, error);
      else if (error instanceof LimitReached) developer.redirect('/developer');
      else throw error;
    }
  }

  async #showClient(
    developer: Member,
    client: ClientDetails | null,
    values: ClientForm,
    fault?: ClientFault,
  ): Promise<void> {
    const hasKeys = client?.token_endpoint_auth_method === 'private_key_jwt';
    const profiles = this.#profilesFor(client);
    const page = {
      name: 'developer-client',
      client: client && {
        ...shownClient(client, this.config.reviewsApps),
        has_keys: hasKeys,
        waits: client.pending_changes !== null,
        secrets: hasSecret(client) ? client.secrets : null,
      },
      profiles: profiles.length > 1 ? profiles : [],
      values,
      webhooks: client ? await this.#webhooksOf(client.client_id, developer.owner) : [],
      scopes: ALL_SCOPES,
      server: this.config.publicUrl,
      fault,
    } as const;
    developer.send(page, fault ? 400 : 200);
  }

  async #webhooksOf(clientId: string, owner: Owner): Promise<AppWebhook[]> {
    const shown: AppWebhook[] = [];
    // Queries sequentially, so that a page uses only one connection.
    for (const { id, url, status } of (await this.webhooks.list(clientId, owner)).slice(0, MAX_WEBHOOKS)) {
      const { origin, pathname } = new URL(url); // an endpoint's URL may have a secret in its query
      shown.push({ url: origin + pathname, status, deliveries: await this.webhooks.deliveries(id, owner) });
    }
    return shown;
  }

  @Post('clients/:client/messages/:message/redeliver')
  async redeliver(
    @FormSender() developer: Sender,
    @Param('client') id: string,
    @Param('message') message: string,
  ): Promise<void> {
    const { made } = await this.forms
      .once(developer, async (manager) => ({
        sent: await this.webhooks.redeliver(message, 'user', developer.owner, manager),
      }))
      .catch((error: unknown) => {
        if (error instanceof UnknownMessage) throw nothingHere();
        if (error instanceof OperatorError) return { made: { sent: 0 } };
        throw error;
      });
    developer.redirect(
      `/developer/clients/${id}`,
      made!.sent > 0 ? 'message-redelivered' : 'message-not-redelivered',
    );
  }

  /** Lists the profiles that the developer may choose: the current profile, and all profiles that the operator allows. */
  #profilesFor(client?: ClientDetails | null): ClientDetails['profile'][] {
    const chosen = this.config.developerOidc ? (['oauth21', 'oidc'] as const) : [];
    return [...new Set([client?.profile ?? 'oauth21', ...chosen])];
  }

  @Get('new-key')
  async newKey(@Visitor('developer/new-key') developer: Member): Promise<void> {
    const confirmation = await developer.confirmationOn('developer/new-key');
    if (confirmation === undefined)
      this.#showKeyForm(developer, { values: { name: '', scopes: [], days: 30 } });
    else developer.redirect(confirmation);
  }

  @Get('made-key')
  async madeKey(@Visitor('developer') developer: Member): Promise<void> {
    const made = await this.forms.take<MadeKey>(developer);
    const call = `${this.config.publicUrl}/api/public/credential`;
    if (made) developer.send({ name: 'developer-made-key', key: made.key, try: call });
    else developer.redirect('/developer');
  }

  @Post('keys')
  async makeKey(@FormSender('developer/new-key') developer: Sender): Promise<void> {
    const { form } = developer;
    const name = asShown(fieldText(form.name));
    const scopes = ALL_SCOPES.filter((scope) => [form.scopes ?? []].flat().includes(scope));
    const days = Number(fieldText(form.days));
    const values = { name: name.slice(0, 200), scopes, days };
    if (!isName(name) || !KEY_DAYS.includes(days)) {
      this.#showKeyForm(developer, { values, fault: 'bad' }, 400);
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
      developer.redirect(`/developer/made-key?made=${formId}`);
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      this.#showKeyForm(developer, { values, fault: 'full' }, 409);
    }
  }

  /** Replaces a key; the old key stops working immediately. */
  @Post('keys/:key/rotate')
  async rotateKey(@FormSender('developer') developer: Sender, @Param('key') id: string): Promise<void> {
    const { owner } = developer;
    if (!(await this.keys.find(id, owner))) throw nothingHere();
    try {
      const { formId } = await this.forms.once<MadeKey>(developer, (manager) =>
        this.keys.rotate(id, 0, 'user', owner, manager),
      );
      this.revocations.announce({ kind: 'key', id });
      developer.redirect(`/developer/made-key?made=${formId}`);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      developer.redirect('/developer', 'key-not-rotated');
    }
  }

  @Post('keys/:key/revoke')
  async revokeKey(@FormSender() developer: Sender, @Param('key') id: string): Promise<void> {
    await this.keys.revoke(id, 'by the member who created it', 'user', developer.owner);
    this.revocations.announce({ kind: 'key', id });
    developer.redirect('/developer', 'key-revoked');
  }

  #showKeyForm(developer: Member, said: Pick<PageOf<'developer-key'>, 'values' | 'fault'>, status = 200) {
    const offered = { scopes: ALL_SCOPES, days: KEY_DAYS, most: MAX_OWN_KEYS };
    developer.send({ name: 'developer-key', ...offered, ...said }, status);
  }
}
