import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { CredentialCache } from '../../auth/credential-cache.js';
import { LimitReached, type Owner } from '../../auth/owner.js';
import { ALL_SCOPES } from '../../auth/scopes.js';
import { Config } from '../../config/config.js';
import { ClientFault, redirectUriFault } from '../../clients/client-rules.js';
import { ClientsService, type ClientDetails } from '../../clients/clients.service.js';
import { ClientCache } from '../../authorization-server/adapters/client-cache.js';
import { AccountPages, FormSender, Visitor, type Member, type Sender } from '../account/account-pages.js';
import { fieldText, UploadBody } from '../requests/form-body.js';
import { ServesPages } from '../requests/page.decorator.js';
import { redirect } from '../rendering/pages.js';
import { SentForms } from '../account/sent-forms.js';
import type { ClientForm, FlashMessage } from '../rendering/page-contents.js';
import { languageOf, textsIn } from '../rendering/texts/texts.js';
import { fill, sentence } from '../rendering/wording.js';
import { clientFormOf, EMPTY_FORM, formOf, linesOf, shownClient, wantedOf } from './client-form.js';
import { caught, hideUnknown, checkedId } from './own.js';

/** Pages on which members register and edit apps. */
@Controller('developer')
@ServesPages()
export class DeveloperClientsController {
  constructor(
    private readonly config: Config,
    private readonly account: AccountPages,
    private readonly credentials: CredentialCache,
    private readonly forms: SentForms,
    private readonly known: ClientCache,
    private readonly clients: ClientsService,
  ) {}

  @Get('new-client')
  newClient(@Res() response: Response, @Visitor('developer') developer: Member): void {
    this.#show(response, developer, null, EMPTY_FORM);
  }

  @Post('clients')
  async register(@Res() response: Response, @FormSender() developer: Sender): Promise<void> {
    const values = clientFormOf(developer.form);
    const outcome = await caught(() =>
      this.forms.once(developer, async (manager) => {
        const { owner } = developer;
        const wanted = { ...wantedOf(values), type: values.type, actor: 'user', owner } as const;
        return { id: await this.clients.create(wanted, manager) };
      }),
    );
    if (outcome instanceof ClientFault) this.#show(response, developer, null, values, outcome);
    else if (outcome instanceof LimitReached) redirect(response, '/developer');
    else this.account.redirectDone(response, `/developer/clients/${outcome.made!.id}`, 'app-registered');
  }

  /** Checks redirect URIs while they are typed, and responds with the faults as JSON for the form's script. */
  @Post('redirect-uris')
  checkRedirectUris(@Res() response: Response, @FormSender() { form }: Sender): void {
    const { faults } = textsIn(languageOf(undefined, response.req.headers['accept-language'])).developer;
    const { type } = clientFormOf(form);
    const found = linesOf(fieldText(form.redirect_uris)).flatMap((uri) => {
      const fault = redirectUriFault(uri, type, this.config.production);
      return fault ? sentence(fill(faults[fault], { value: uri.slice(0, 200) })) : [];
    });
    response.json({ faults: found });
  }

  @Get('clients/:client')
  async client(
    @Res() response: Response,
    @Visitor('developer') developer: Member,
    @Param('client') id: string,
  ): Promise<void> {
    const client = await this.#find(id, developer);
    this.#show(response, developer, client, formOf(client));
  }

  @Post('clients/:client')
  async change(
    @Res() response: Response,
    @FormSender() developer: Sender,
    @Param('client') id: string,
  ): Promise<void> {
    const values = clientFormOf(developer.form);
    const client = await this.#find(id, developer);
    const outcome = await caught(() => {
      const { jwks, ...wanted } = wantedOf(values); // without keys, it keeps those that it has
      return this.clients.update(id, () => ({ ...wanted, ...(jwks && { jwks }) }), 'user', developer.owner);
    });
    if (outcome instanceof ClientFault)
      this.#show(response, developer, client, { ...values, type: client.type }, outcome);
    else this.#changed(response, id, 'app-changed');
  }

  @Post('clients/:client/logo')
  async changeLogo(
    @Res() response: Response,
    @UploadBody() form: FormData,
    @Param('client') id: string,
  ): Promise<void> {
    const [csrf, file] = [form.get('csrf'), form.get('logo')];
    const developer = await this.account.sender(response, typeof csrf === 'string' ? { csrf } : {});
    const client = await this.#find(id, developer);
    const logo = form.has('remove') || !(file instanceof File) ? null : Buffer.from(await file.arrayBuffer());
    const outcome = await caught(() => this.clients.update(id, () => ({ logo }), 'user', developer.owner));
    if (outcome instanceof ClientFault) this.#show(response, developer, client, formOf(client), outcome);
    else this.#changed(response, id, 'app-changed');
  }

  @Post('clients/:client/disable')
  disable(
    @Res() response: Response,
    @FormSender() { owner }: Sender,
    @Param('client') id: string,
  ): Promise<void> {
    return this.#setDisabled(response, owner, id, true);
  }

  @Post('clients/:client/enable')
  enable(
    @Res() response: Response,
    @FormSender() { owner }: Sender,
    @Param('client') id: string,
  ): Promise<void> {
    return this.#setDisabled(response, owner, id, false);
  }

  @Post('clients/:client/delete')
  async delete(
    @Res() response: Response,
    @FormSender() { owner }: Sender,
    @Param('client') id: string,
  ): Promise<void> {
    await this.clients.delete(checkedId(id), 'user', owner).catch(hideUnknown);
    this.#forget(id);
    this.account.redirectDone(response, '/developer', 'app-deleted');
  }

  async #setDisabled(response: Response, owner: Owner, id: string, disabled: boolean): Promise<void> {
    await this.clients.setDisabled(checkedId(id), disabled, 'user', owner).catch(hideUnknown);
    this.#changed(response, id, disabled ? 'app-disabled' : 'app-enabled');
  }

  #changed(response: Response, id: string, done: FlashMessage): void {
    this.#forget(id);
    this.account.redirectDone(response, `/developer/clients/${id}`, done);
  }

  /** Forgets what this process has cached of the app; other processes are notified by the database. */
  #forget(id: string): void {
    this.credentials.revoke({ kind: 'client', id });
    this.known.forget(id);
  }

  async #find(id: string, { owner }: Member): Promise<ClientDetails> {
    return this.clients.find(checkedId(id), owner).catch(hideUnknown);
  }

  #show(
    response: Response,
    developer: Member,
    client: ClientDetails | null,
    values: ClientForm,
    fault?: ClientFault,
  ): void {
    const shown = client && {
      ...shownClient(client),
      has_keys: client.token_endpoint_auth_method === 'private_key_jwt',
    };
    const page = {
      name: 'developer-client',
      client: shown,
      values,
      scopes: ALL_SCOPES,
      server: this.config.publicUrl,
      fault,
    } as const;
    this.account.send(response, developer, page, fault ? 400 : 200);
  }
}
