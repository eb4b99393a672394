import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { CredentialCache } from '../../../auth/credential-cache.js';
import { LimitReached } from '../../../auth/owner.js';
import { ALL_SCOPES } from '../../../auth/scopes.js';
import { Config } from '../../../config/config.js';
import { ClientFault, redirectUriFault } from '../../admin/client-rules.js';
import { ClientsService } from '../../admin/clients.service.js';
import type { ClientDetails } from '../../admin/clients.service.js';
import { ClientCache } from '../../storage/client-cache.js';
import { AccountPages } from '../account-pages.js';
import { FormBody, textOf } from '../form-body.js';
import type { Form } from '../form-body.js';
import { Page } from '../page.decorator.js';
import { redirect } from '../pages.js';
import { SentForms } from '../sent-forms.js';
import type { ClientForm, Done } from '../pages.js';
import { languageOf, textsIn } from '../texts/texts.js';
import { UploadBody } from '../upload-body.js';
import { fill, sentence } from '../wording.js';
import { clientFormOf, EMPTY_FORM, formOf, linesOf, shownClient, wantedOf } from './client-form.js';
import { caught, DeveloperPages, hideUnknown, idOf } from './developer-pages.js';
import type { Developer } from './developer-pages.js';

/** Pages on which members register and edit apps. */
@Controller('developer')
@Page()
export class DeveloperClientsController {
  readonly #clients: ClientsService;

  constructor(
    private readonly config: Config,
    dataSource: DataSource,
    private readonly developers: DeveloperPages,
    private readonly account: AccountPages,
    private readonly credentials: CredentialCache,
    private readonly forms: SentForms,
    private readonly known: ClientCache,
  ) {
    this.#clients = new ClientsService(dataSource, config);
  }

  @Get('new-client')
  async newClient(@Req() request: Request, @Res() response: Response): Promise<void> {
    const developer = await this.developers.visitor('developer', request, response);
    if (developer) this.#show(request, response, developer, 200, null, EMPTY_FORM);
  }

  @Post('clients')
  async register(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const developer = await this.developers.sender(request, response, form);
    const values = clientFormOf(form);
    const outcome = await caught(() =>
      this.forms.once(developer, form, async (manager) => {
        const { owner } = developer;
        const wanted = { ...wantedOf(values), type: values.type, actor: 'user', owner } as const;
        return { id: await this.#clients.create(wanted, manager) };
      }),
    );
    if (outcome instanceof ClientFault) this.#show(request, response, developer, 400, null, values, outcome);
    else if (outcome instanceof LimitReached) redirect(response, '/developer');
    else this.account.redirectDone(response, `/developer/clients/${outcome.made!.id}`, 'app-registered');
  }

  /** Checks redirect URIs while they are typed, and responds with the faults as JSON for the form's script. */
  @Post('redirect-uris')
  async checkRedirectUris(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    await this.developers.sender(request, response, form);
    const { faults } = textsIn(languageOf(undefined, request.headers['accept-language'])).developer;
    const { type } = clientFormOf(form);
    const found = linesOf(textOf(form.redirect_uris)).flatMap((uri) => {
      const fault = redirectUriFault(uri, type, this.config.production);
      return fault ? sentence(fill(faults[fault], { value: uri.slice(0, 200) })) : [];
    });
    response.json({ faults: found });
  }

  @Get('clients/:client')
  async client(
    @Req() request: Request,
    @Res() response: Response,
    @Param('client') id: string,
  ): Promise<void> {
    const developer = await this.developers.visitor('developer', request, response);
    if (!developer) return;
    const client = await this.#find(id, developer);
    this.#show(request, response, developer, 200, client, formOf(client));
  }

  @Post('clients/:client')
  async change(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('client') id: string,
  ): Promise<void> {
    const developer = await this.developers.sender(request, response, form);
    const values = clientFormOf(form);
    const client = await this.#find(id, developer);
    const outcome = await caught(async () => {
      const wanted = wantedOf(values);
      await this.#clients.update(
        id,
        (before) => ({ ...wanted, jwks: wanted.jwks ?? before.jwks }),
        'user',
        developer.owner,
      );
    });
    if (outcome instanceof ClientFault)
      this.#show(request, response, developer, 400, client, { ...values, type: client.type }, outcome);
    else this.#changed(response, id, 'app-changed');
  }

  @Post('clients/:client/logo')
  async changeLogo(
    @Req() request: Request,
    @Res() response: Response,
    @UploadBody() form: FormData,
    @Param('client') id: string,
  ): Promise<void> {
    const csrf = form.get('csrf');
    const developer = await this.developers.sender(request, response, {
      csrf: typeof csrf === 'string' ? csrf : undefined,
    });
    const client = await this.#find(id, developer);
    const file = form.get('logo');
    const logo =
      form.has('remove') || file === null || typeof file === 'string'
        ? undefined
        : Buffer.from(await file.arrayBuffer());
    const outcome = await caught(() => this.#clients.update(id, () => ({ logo }), 'user', developer.owner));
    if (outcome instanceof ClientFault)
      this.#show(request, response, developer, 400, client, formOf(client), outcome);
    else this.#changed(response, id, 'app-changed');
  }

  @Post('clients/:client/disable')
  disable(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('client') id: string,
  ): Promise<void> {
    return this.#setDisabled(request, response, form, id, true);
  }

  @Post('clients/:client/enable')
  enable(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('client') id: string,
  ): Promise<void> {
    return this.#setDisabled(request, response, form, id, false);
  }

  @Post('clients/:client/delete')
  async delete(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('client') id: string,
  ): Promise<void> {
    const { owner } = await this.developers.sender(request, response, form);
    await this.#clients.delete(idOf(id), 'user', owner).catch(hideUnknown);
    this.#forget(id);
    this.account.redirectDone(response, '/developer', 'app-deleted');
  }

  async #setDisabled(
    request: Request,
    response: Response,
    form: Form,
    id: string,
    disabled: boolean,
  ): Promise<void> {
    const { owner } = await this.developers.sender(request, response, form);
    await this.#clients.setDisabled(idOf(id), disabled, 'user', owner).catch(hideUnknown);
    this.#changed(response, id, disabled ? 'app-disabled' : 'app-enabled');
  }

  #changed(response: Response, id: string, done: Done): void {
    this.#forget(id);
    this.account.redirectDone(response, `/developer/clients/${id}`, done);
  }

  /** Forgets what this process has cached of the app; other processes are notified by the database. */
  #forget(id: string): void {
    this.credentials.revoke({ kind: 'client', id });
    this.known.forget(id);
  }

  async #find(id: string, { owner }: Developer): Promise<ClientDetails> {
    const found = await this.#clients.find(idOf(id), owner).catch(hideUnknown);
    return found;
  }

  #show(
    request: Request,
    response: Response,
    developer: Developer,
    status: number,
    client: ClientDetails | null,
    values: ClientForm,
    fault?: ClientFault,
  ): void {
    const page = {
      name: 'developer-client',
      ...this.account.takeDone(request, response),
      client: client && {
        ...shownClient(client),
        has_keys: client.token_endpoint_auth_method === 'private_key_jwt',
      },
      values,
      scopes: ALL_SCOPES,
      fault,
    } as const;
    this.developers.send(response, developer, page, status);
  }
}
