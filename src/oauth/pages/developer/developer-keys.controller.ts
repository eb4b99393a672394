import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { CONFIRMED_SECONDS } from '../../../accounts/ways-in.js';
import { ApiKeysService, MOST_OWN_KEYS } from '../../../auth/api-keys/api-keys.service.js';
import { CredentialCache } from '../../../auth/credential-cache.js';
import { LimitReached } from '../../../auth/owner.js';
import { ALL_SCOPES } from '../../../auth/scopes.js';
import { Config } from '../../../config/config.js';
import { eitherOf, TokenKeys } from '../../../crypto/token-keys.js';
import { OperatorError } from '../../../values/operator-error.js';
import { asShown, isName } from '../../../values/names.js';
import { ClientFault } from '../../admin/client-rules.js';
import { OauthDatabase } from '../../storage/oauth-database.js';
import { AccountPages } from '../account-pages.js';
import { FormBody, textOf } from '../form-body.js';
import type { Form } from '../form-body.js';
import { Page } from '../page.decorator.js';
import { redirect } from '../pages.js';
import { caught, DeveloperPages, hideUnknown, idOf, nothingHere } from './developer-pages.js';
import type { Developer } from './developer-pages.js';

/** An older sign-in has to be repeated before a key is created. Uses the database's clock, as all expiry does. */
const IS_FRESH = `SELECT FROM oauth_sessions WHERE uid_key IN ($1, $2)
  AND signed_in_at > now() - make_interval(secs => ${CONFIRMED_SECONDS})`;
/** The lifetimes offered for keys, in days. */
const KEY_DAYS = [1, 7, 30, 90] as const;
const DAY_SECONDS = 86_400;

/** Where members create their own keys. This requires a recent sign-in, so that nobody can do it in an abandoned browser. */
@Controller('developer')
@Page()
export class DeveloperKeysController {
  readonly #keys: ApiKeysService;
  readonly #sessionKeys: TokenKeys;

  constructor(
    private readonly config: Config,
    dataSource: DataSource,
    private readonly database: OauthDatabase,
    private readonly developers: DeveloperPages,
    private readonly account: AccountPages,
    private readonly credentials: CredentialCache,
  ) {
    this.#keys = new ApiKeysService(dataSource, config);
    this.#sessionKeys = new TokenKeys(config.secrets);
  }

  @Get('new-key')
  async newKey(@Req() request: Request, @Res() response: Response): Promise<void> {
    const developer = await this.developers.visitor('developer/new-key', request, response);
    if (!developer) return;
    if (await this.#isFresh(developer))
      this.#showForm(response, developer, 200, { name: '', scopes: [], days: 30 });
    else this.account.signInAgain('developer/new-key', developer, request, response);
  }

  /** The key appears in this response only. */
  @Post('keys')
  async makeKey(@Req() request: Request, @Res() response: Response, @FormBody() form: Form): Promise<void> {
    const developer = await this.developers.sender(request, response, form);
    if (!(await this.#isFresh(developer))) {
      redirect(response, '/developer/new-key');
      return;
    }
    const name = asShown(textOf(form.name));
    const scopes = ALL_SCOPES.filter((scope) => [form.scopes ?? []].flat().includes(scope));
    const days = Number(textOf(form.days));
    const values = { name: name.slice(0, 200), scopes, days };
    if (!isName(name) || !isKeyDays(days)) {
      this.#showForm(response, developer, 400, values, 'bad');
      return;
    }
    const outcome = await caught(() =>
      this.#keys.create({
        userId: developer.user.id,
        name,
        scopes,
        environment: this.config.production ? 'live' : 'test',
        cidrs: [],
        expiresInSeconds: days * DAY_SECONDS,
        actor: 'user',
        owner: developer.owner,
      }),
    );
    if (outcome instanceof LimitReached) this.#showForm(response, developer, 409, values, 'full');
    else if (outcome instanceof ClientFault) throw outcome;
    else this.#showMade(response, developer, outcome.key);
  }

  /** Replaces a key, which ends at once. */
  @Post('keys/:key/rotate')
  async rotateKey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('key') id: string,
  ): Promise<void> {
    const developer = await this.developers.sender(request, response, form);
    if (!(await this.#keys.find(idOf(id), developer.owner))) throw nothingHere();
    if (!(await this.#isFresh(developer))) {
      this.account.signInAgain('developer', developer, request, response);
      return;
    }
    try {
      const { key } = await this.#keys.rotate(id, 0, 'user', developer.owner);
      this.credentials.revoke({ kind: 'key', id });
      this.#showMade(response, developer, key);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      this.account.redirectDone(response, '/developer', 'key-not-rotated');
    }
  }

  @Post('keys/:key/revoke')
  async revokeKey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('key') id: string,
  ): Promise<void> {
    const { owner } = await this.developers.sender(request, response, form);
    await this.#keys.revoke(idOf(id), 'by the member who made it', 'user', owner).catch(hideUnknown);
    this.credentials.revoke({ kind: 'key', id });
    this.account.redirectDone(response, '/developer', 'key-revoked');
  }

  async #isFresh({ session }: Developer): Promise<boolean> {
    if (!session.loginTs) return false; // the platform's own login did not say when they signed in there
    const keys = eitherOf(this.#sessionKeys.keysOf('Session.uid', session.uid));
    return (await this.database.rows(IS_FRESH, keys)).length > 0;
  }

  #showForm(
    response: Response,
    developer: Developer,
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
    this.developers.send(response, developer, page, status);
  }

  #showMade(response: Response, developer: Developer, key: string): void {
    const call = `${this.config.publicUrl}/api/public/credential`;
    this.developers.send(response, developer, { name: 'developer-made-key', key, try: call });
  }
}

function isKeyDays(days: number): days is (typeof KEY_DAYS)[number] {
  return (KEY_DAYS as readonly number[]).includes(days);
}
