import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Session } from 'oidc-provider';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import type { SignedIn } from '../../accounts/sign-in.js';
import { CONFIRMED_SECONDS } from '../../accounts/ways-in.js';
import { ApiKeysService, MOST_OWN_KEYS, UnknownKey } from '../../auth/api-keys/api-keys.service.js';
import type { KeyDetails } from '../../auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { LimitReached } from '../../auth/owner.js';
import type { Owner } from '../../auth/owner.js';
import { ALL_SCOPES, isScope } from '../../auth/scopes.js';
import { DeveloperRequests, MOST_KEPT } from '../../auth/usage/developer-requests.js';
import { Config } from '../../config/config.js';
import { eitherOf, TokenKeys } from '../../crypto/token-keys.js';
import { addressOf } from '../../values/network.js';
import { OperatorError } from '../../values/operator-error.js';
import { isStorable } from '../../values/string-rules.js';
import { ClientFault, redirectUriFault } from '../admin/client-rules.js';
import { ClientsService, MOST_OWN_CLIENTS, UnknownClient } from '../admin/clients.service.js';
import type { ClientChanges, ClientDetails } from '../admin/clients.service.js';
import { PasskeyForm } from '../passkeys/passkey-form.js';
import { queryOf, pathOf, UpstreamSignIns } from '../upstream/upstream-sign-ins.js';
import type { AccountPage } from '../upstream/upstream-sign-ins.js';
import { ClientCache } from '../storage/client-cache.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { SignOuts } from '../upstream/sign-outs.js';
import { BrowserSessions } from './browser-sessions.js';
import type { SignedInUser } from './browser-sessions.js';
import { DoneNotices } from './done-notices.js';
import { FormBody } from './form-body.js';
import type { Form } from './form-body.js';
import { clientLogoPath, hostOf } from './page-client.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import { Pages, redirect } from './pages.js';
import type { ClientForm, DeveloperClient, Done, Page as ShownPage } from './pages.js';
import { SignInForm } from './sign-in-form.js';
import type { SignInRefusal } from './sign-in-form.js';
import { languageOf, TEXTS } from './texts/texts.js';
import { UploadBody } from './upload-body.js';
import { fill, sentence } from './wording.js';

/** A sign-in from longer ago is shown once more before a key is made. By the database's clock, as every end is. */
const IS_FRESH = `SELECT FROM oauth_sessions WHERE uid_key IN ($1, $2)
  AND signed_in_at > now() - make_interval(secs => ${CONFIRMED_SECONDS})`;
/** The lives of keys that are offered, in days. */
const KEY_DAYS = [1, 7, 30, 90] as const;
const DAY_SECONDS = 86_400;

type SignInPage = Extract<AccountPage, `developer${string}`>;

/** The member who is signed in, and the form that they sent. */
interface Acting {
  readonly user: SignedInUser;
  readonly owner: Owner;
  readonly session: Session;
}

/**
 * Where members register apps and make keys of their own, and see what those send: below `/developer`, only with DEVELOPER_CONSOLE. All of it is
 * done by the services of the command line, which reach nothing here but what is the member's own; what is not is 404.
 */
@Controller('developer')
@Page()
export class DeveloperController {
  readonly #clients: ClientsService;
  readonly #keys: ApiKeysService;
  readonly #sessionKeys: TokenKeys;

  constructor(
    private readonly config: Config,
    dataSource: DataSource,
    private readonly database: OauthDatabase,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly signInForm: SignInForm,
    private readonly csrf: Csrf,
    private readonly credentials: CredentialCache,
    private readonly known: ClientCache,
    private readonly requests: DeveloperRequests,
    private readonly upstream: UpstreamSignIns,
    private readonly signOuts: SignOuts,
    private readonly done: DoneNotices,
    private readonly passkeyForm: PasskeyForm,
  ) {
    this.#clients = new ClientsService(dataSource, config);
    this.#keys = new ApiKeysService(dataSource, config);
    this.#sessionKeys = new TokenKeys(config.secrets);
  }

  @Get()
  async overview(@Req() request: Request, @Res() response: Response): Promise<void> {
    const acting = await this.#visiting('developer', request, response);
    if (!acting) return;
    const [clients, keys] = await Promise.all([
      this.#clients.list(acting.owner),
      this.#keys.list({ userId: acting.user.id, own: true }),
    ]);
    this.#send(request, response, acting, {
      name: 'developer',
      ...this.done.take(request, response),
      clients: clients.map((client) => ({ ...shown(client), host: hostOf(client.redirect_uris[0]!) })),
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
    const acting = await this.#visiting('developer', request, response);
    if (!acting) return;
    const asked = queryOf(request).get('of');
    const of = asked === null ? null : idOf(asked);
    const [clients, keys] = await Promise.all([
      this.#clients.list(acting.owner),
      this.#keys.list({ userId: acting.user.id, own: true }),
    ]);
    const apps = [...clients.map(({ client_id: id, name }) => ({ id, name })), ...keys].map(
      ({ id, name }) => ({
        id,
        name,
      }),
    );
    if (of !== null && !apps.some(({ id }) => id === of)) throw nothingHere();
    const requests = await this.requests.last(acting.user.id, of);
    this.#send(request, response, acting, {
      name: 'developer-requests',
      of,
      apps,
      requests,
      most: MOST_KEPT,
    });
  }

  @Get('new-client')
  async newClient(@Req() request: Request, @Res() response: Response): Promise<void> {
    const acting = await this.#visiting('developer', request, response);
    if (acting) this.#showClient(request, response, acting, 200, null, EMPTY_FORM);
  }

  @Post('clients')
  async register(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const acting = await this.#acting(request, response, form);
    const values = clientFormOf(form);
    const outcome = await caught(() =>
      this.#clients.create({ ...wantedOf(values), type: values.type, actor: 'user', owner: acting.owner }),
    );
    if (outcome instanceof ClientFault)
      this.#showClient(request, response, acting, 400, null, values, outcome);
    else if (outcome instanceof LimitReached) redirect(response, '/developer');
    else this.#redirectDone(response, `/developer/clients/${outcome}`, 'app-registered');
  }

  /** What is wrong with redirect URIs as somebody types them: JSON for the script of the form. */
  @Post('redirect-uris')
  async checkRedirectUris(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    await this.#acting(request, response, form);
    const { faults } = TEXTS[languageOf(undefined, request.headers['accept-language'])].developer;
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
    const acting = await this.#visiting('developer', request, response);
    if (!acting) return;
    const client = await this.#find(id, acting);
    this.#showClient(request, response, acting, 200, client, formOf(client));
  }

  @Post('clients/:client')
  async change(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('client') id: string,
  ): Promise<void> {
    const acting = await this.#acting(request, response, form);
    const values = clientFormOf(form);
    const client = await this.#find(id, acting);
    const outcome = await caught(async () => {
      const wanted = wantedOf(values);
      await this.#clients.update(
        id,
        (before) => ({ ...wanted, jwks: wanted.jwks ?? before.jwks }),
        'user',
        acting.owner,
      );
    });
    if (outcome instanceof ClientFault)
      this.#showClient(request, response, acting, 400, client, { ...values, type: client.type }, outcome);
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
    const acting = await this.#acting(request, response, {
      csrf: typeof csrf === 'string' ? csrf : undefined,
    });
    const client = await this.#find(id, acting);
    const file = form.get('logo');
    const logo =
      form.has('remove') || file === null || typeof file === 'string'
        ? undefined
        : Buffer.from(await file.arrayBuffer());
    const outcome = await caught(() => this.#clients.update(id, () => ({ logo }), 'user', acting.owner));
    if (outcome instanceof ClientFault)
      this.#showClient(request, response, acting, 400, client, formOf(client), outcome);
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
    const acting = await this.#acting(request, response, form);
    await this.#clients.delete(idOf(id), 'user', acting.owner).catch(hideUnknown);
    this.#forget(id);
    this.#redirectDone(response, '/developer', 'app-deleted');
  }

  @Get('new-key')
  async newKey(@Req() request: Request, @Res() response: Response): Promise<void> {
    const acting = await this.#visiting('developer/new-key', request, response);
    if (!acting) return;
    if (await this.#isFresh(acting))
      this.#showKey(request, response, acting, 200, { name: '', scopes: [], days: 30 });
    else this.#askAgain('developer/new-key', request, response);
  }

  /** The key is in the response to this one request, and nowhere else. */
  @Post('keys')
  async makeKey(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const acting = await this.#acting(request, response, form);
    if (!(await this.#isFresh(acting))) {
      redirect(response, '/developer/new-key');
      return;
    }
    const name = textOf(form.name).trim();
    const scopes = ALL_SCOPES.filter((scope) => [form.scopes ?? []].flat().includes(scope));
    const days = Number(textOf(form.days));
    const isWrong =
      name === '' || [...name].length > 100 || /\p{Cc}/u.test(name) || !isStorable(name) || !isKeyDays(days);
    const values = { name: name.slice(0, 200), scopes, days };
    if (isWrong) {
      this.#showKey(request, response, acting, 400, values, 'bad');
      return;
    }
    const outcome = await caught(() =>
      this.#keys.create({
        userId: acting.user.id,
        name,
        scopes,
        environment: this.config.production ? 'live' : 'test',
        cidrs: [],
        expiresInSeconds: days * DAY_SECONDS,
        actor: 'user',
        owner: acting.owner,
      }),
    );
    if (outcome instanceof LimitReached) this.#showKey(request, response, acting, 409, values, 'full');
    else if (outcome instanceof ClientFault) throw outcome;
    else this.#showMadeKey(request, response, acting, outcome.key);
  }

  /** In place of the key, which ends at once. */
  @Post('keys/:key/rotate')
  async rotateKey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('key') id: string,
  ): Promise<void> {
    const acting = await this.#acting(request, response, form);
    if (!(await this.#keys.find(idOf(id), acting.owner))) throw nothingHere();
    if (!(await this.#isFresh(acting))) {
      this.#askAgain('developer', request, response);
      return;
    }
    try {
      const { key } = await this.#keys.rotate(id, 0, 'user', acting.owner);
      this.credentials.revoke({ kind: 'key', id });
      this.#showMadeKey(request, response, acting, key);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      this.#redirectDone(response, '/developer', 'key-not-rotated');
    }
  }

  @Post('keys/:key/revoke')
  async revokeKey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('key') id: string,
  ): Promise<void> {
    const acting = await this.#acting(request, response, form);
    await this.#keys.revoke(idOf(id), 'by the member who made it', 'user', acting.owner).catch(hideUnknown);
    this.credentials.revoke({ kind: 'key', id });
    this.#redirectDone(response, '/developer', 'key-revoked');
  }

  @Get('upstream')
  signInUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#signInUpstream('developer', request, response);
  }

  @Get('new-key/upstream')
  signInToNewKeyUpstream(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.#signInUpstream('developer/new-key', request, response);
  }

  @Post('sign-in')
  signIn(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    return this.#signIn('developer', request, response, form);
  }

  @Post('new-key/sign-in')
  signInToNewKey(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    return this.#signIn('developer/new-key', request, response, form);
  }

  /** What the script of the sign-in page asks for. */
  @Post('passkey/options')
  passkeyOptions(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    return this.#passkeyOptions('developer', request, response, form);
  }

  @Post('passkey')
  signInWithPasskey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    return this.#signInWithPasskey('developer', request, response, form);
  }

  @Post('new-key/passkey/options')
  passkeyOptionsToNewKey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    return this.#passkeyOptions('developer/new-key', request, response, form);
  }

  @Post('new-key/passkey')
  signInToNewKeyWithPasskey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    return this.#signInWithPasskey('developer/new-key', request, response, form);
  }

  async #setDisabled(
    request: Request,
    response: Response,
    form: Form,
    id: string,
    disabled: boolean,
  ): Promise<void> {
    const acting = await this.#acting(request, response, form);
    await this.#clients.setDisabled(idOf(id), disabled, 'user', acting.owner).catch(hideUnknown);
    this.#changed(response, id, disabled ? 'app-disabled' : 'app-enabled');
  }

  /** Forgets what this process has cached of the app; other processes hear of the change from the database. */
  #forget(id: string): void {
    this.credentials.revoke({ kind: 'client', id });
    this.known.forget(id);
  }

  #changed(response: Response, id: string, done: Done): void {
    this.#forget(id);
    this.#redirectDone(response, `/developer/clients/${id}`, done);
  }

  async #find(id: string, { owner }: Acting): Promise<ClientDetails> {
    const found = await this.#clients.find(idOf(id), owner).catch(hideUnknown);
    return found;
  }

  #showClient(
    request: Request,
    response: Response,
    acting: Acting,
    status: number,
    client: ClientDetails | null,
    values: ClientForm,
    fault?: ClientFault,
  ): void {
    const page = {
      name: 'developer-client',
      ...this.done.take(request, response),
      client: client && {
        ...shown(client),
        has_keys: client.token_endpoint_auth_method === 'private_key_jwt',
      },
      values,
      scopes: ALL_SCOPES,
      fault,
    } as const;
    this.#send(request, response, acting, page, status);
  }

  #showKey(
    request: Request,
    response: Response,
    acting: Acting,
    status: number,
    values: { name: string; scopes: readonly string[]; days: number },
    fault?: 'bad' | 'full',
  ): void {
    const page = {
      name: 'developer-key',
      values,
      scopes: ALL_SCOPES,
      days: KEY_DAYS,
      fault,
      most: MOST_OWN_KEYS,
    } as const;
    this.#send(request, response, acting, page, status);
  }

  #showMadeKey(request: Request, response: Response, acting: Acting, key: string): void {
    const call = `${this.config.publicUrl}/api/public/credential`;
    this.#send(request, response, acting, { name: 'developer-made-key', key, try: call });
  }

  #send(request: Request, response: Response, { user }: Acting, page: DeveloperPage, status = 200): void {
    const csrf = this.csrf.token(request, response);
    this.pages.send(response, status, { ...page, csrf, user }, { formTargets: this.signOuts.formTargets });
  }

  /** @returns undefined where nobody is signed in, who is asked to */
  async #visiting(page: SignInPage, request: Request, response: Response): Promise<Acting | undefined> {
    const current = await this.sessions.current(request, response);
    if (current) return actingOf(request, current);
    if (this.config.localSignIn) this.#showSignIn(page, request, response, 200, { lead: 'toDeveloper' });
    else redirect(response, `${pathOf(page)}/upstream`);
    return undefined;
  }

  async #acting(request: Request, response: Response, form: Form): Promise<Acting> {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
    const current = await this.sessions.current(request, response);
    if (!current) throw new PageFault(401, 'signedOut');
    return actingOf(request, current);
  }

  async #isFresh({ session }: Acting): Promise<boolean> {
    const keys = eitherOf(this.#sessionKeys.keysOf('Session.uid', session.uid));
    return (await this.database.rows(IS_FRESH, keys)).length > 0;
  }

  /** Asks for a fresh sign-in, so that nobody can make a key in a browser that somebody left open. */
  #askAgain(page: SignInPage, request: Request, response: Response): void {
    if (this.config.localSignIn) this.#showSignIn(page, request, response, 200, { lead: 'again' });
    else redirect(response, `${pathOf(page)}/upstream?other=1`);
  }

  #showSignIn(
    page: SignInPage,
    request: Request,
    response: Response,
    status: number,
    said: SignInRefusal['said'] & { lead: 'toDeveloper' | 'again' },
  ): void {
    const { upstream } = this.upstream.linkFrom(pathOf(page));
    const again =
      upstream && said.lead === 'again' ? { ...upstream, href: `${upstream.href}?other=1` } : upstream;
    this.pages.send(response, status, {
      name: 'sign-in',
      action: `${pathOf(page)}/sign-in`,
      csrf: this.csrf.token(request, response),
      client: null,
      ...(again ? { upstream: again } : {}),
      ...this.passkeyForm.formOn(pathOf(page)),
      ...said,
    });
  }

  async #signIn(page: SignInPage, request: Request, response: Response, form: Form): Promise<void> {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
    if (!this.config.localSignIn) throw new PageFault(400, 'malformed');
    const result = await this.signInForm.submit(request, response, form, 'account');
    await this.#finishSignIn(page, request, response, result);
  }

  async #passkeyOptions(page: SignInPage, request: Request, response: Response, form: Form): Promise<void> {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
    await this.passkeyForm.options(request, response, pathOf(page));
  }

  async #signInWithPasskey(
    page: SignInPage,
    request: Request,
    response: Response,
    form: Form,
  ): Promise<void> {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
    const result = await this.passkeyForm.submit(request, response, form, pathOf(page), 'account');
    await this.#finishSignIn(page, request, response, result);
  }

  async #finishSignIn(
    page: SignInPage,
    request: Request,
    response: Response,
    result: SignedIn | SignInRefusal,
  ): Promise<void> {
    if ('status' in result) {
      this.#showSignIn(page, request, response, result.status, { ...result.said, lead: 'toDeveloper' });
      return;
    }
    await this.sessions.signIn(request, response, result);
    redirect(response, pathOf(page));
  }

  async #signInUpstream(page: SignInPage, request: Request, response: Response): Promise<void> {
    const wishes = { anew: queryOf(request).has('other') };
    redirect(response, await this.upstream.begin(request, response, { account: page }, wishes));
  }

  #redirectDone(response: Response, path: string, done: Done): void {
    this.done.leave(response, done);
    redirect(response, path);
  }
}

/** A page, without the parts that all of them share. */
type DeveloperPage = Distributed<Extract<ShownPage, { name: `developer${string}` }>>;
type Distributed<T> = T extends unknown ? Omit<T, 'csrf' | 'user'> : never;

const EMPTY_FORM: ClientForm = {
  name: '',
  type: 'web',
  redirect_uris: '',
  allowed_origins: '',
  post_logout_redirect_uris: '',
  scopes: ALL_SCOPES,
  jwks: '',
  client_uri: '',
  policy_uri: '',
};

function actingOf(request: Request, { user, session }: { user: SignedInUser; session: Session }): Acting {
  return { user, session, owner: { userId: user.id, ip: addressOf(request) ?? null } };
}

function isAccepted({ status }: KeyDetails): boolean {
  return status === 'active' || status === 'replaced';
}

function isKeyDays(days: number): days is (typeof KEY_DAYS)[number] {
  return (KEY_DAYS as readonly number[]).includes(days);
}

function shown(client: ClientDetails): DeveloperClient {
  const byPlatform = client.disabled_at !== null && !client.disabled_by_owner;
  return {
    client_id: client.client_id,
    name: client.name,
    type: client.type,
    state: byPlatform ? 'disabledByPlatform' : client.disabled_at === null ? 'enabled' : 'disabled',
    // The logo of one that is disabled is not served.
    ...(client.has_logo && client.disabled_at === null ? { logo: clientLogoPath(client.client_id) } : {}),
  };
}

/** What stands in the fields where an app is changed. */
function formOf(client: ClientDetails): ClientForm {
  return {
    name: client.name,
    type: client.type,
    redirect_uris: client.redirect_uris.join('\n'),
    allowed_origins: client.allowed_origins.join('\n'),
    post_logout_redirect_uris: client.post_logout_redirect_uris.join('\n'),
    scopes: client.scopes,
    jwks: '',
    client_uri: client.client_uri ?? '',
    policy_uri: client.policy_uri ?? '',
  };
}

/** The form as it was typed, to be shown again. */
function clientFormOf(form: Form): ClientForm {
  return {
    name: textOf(form.name),
    type: form.type === 'native' ? 'native' : 'web',
    redirect_uris: textOf(form.redirect_uris),
    allowed_origins: textOf(form.allowed_origins),
    post_logout_redirect_uris: textOf(form.post_logout_redirect_uris),
    scopes: [form.scopes ?? []].flat().filter(isScope),
    jwks: textOf(form.jwks),
    client_uri: textOf(form.client_uri).trim(),
    policy_uri: textOf(form.policy_uri).trim(),
  };
}

/** @throws ClientFault where the keys are no JSON */
function wantedOf(values: ClientForm) {
  return {
    name: values.name.trim(),
    redirectUris: linesOf(values.redirect_uris),
    allowedOrigins: linesOf(values.allowed_origins),
    postLogoutRedirectUris: linesOf(values.post_logout_redirect_uris),
    scopes: ALL_SCOPES.filter((scope) => values.scopes.includes(scope)),
    jwks: keysOf(values.jwks),
    clientUri: values.client_uri === '' ? undefined : values.client_uri,
    policyUri: values.policy_uri === '' ? undefined : values.policy_uri,
  } satisfies ClientChanges;
}

function keysOf(text: string): { keys: Record<string, unknown>[] } | undefined {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text) as { keys: Record<string, unknown>[] };
  } catch {
    throw new ClientFault('noKeys', 'jwks');
  }
}

function linesOf(text: string): string[] {
  return [...new Set(text.split(/\r?\n/).flatMap((line) => line.trim() || []))];
}

function textOf(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** @throws PageFault for what cannot be one of our ids */
function idOf(id: string): string {
  if (!/^[\w-]{1,100}$/.test(id)) throw nothingHere();
  return id;
}

/** The faults that a form shows; everything else is thrown. */
async function caught<T>(work: () => Promise<T>): Promise<T | ClientFault | LimitReached> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ClientFault || error instanceof LimitReached) return error;
    return hideUnknown(error);
  }
}

/** Answers 404 for what is another member's, as for what never existed. */
function hideUnknown(error: unknown): never {
  throw error instanceof UnknownClient || error instanceof UnknownKey ? nothingHere() : error;
}

function nothingHere(): PageFault {
  return new PageFault(404, 'nothingHere');
}
