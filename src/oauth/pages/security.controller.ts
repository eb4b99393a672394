import { Controller, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import { DeviceCookies } from '../../accounts/device-cookies.js';
import { passwordFault } from '../../accounts/password-rules.js';
import { SignIn } from '../../accounts/sign-in.js';
import { Unconfirmed, WaysIn } from '../../accounts/ways-in.js';
import type { SignedInMember } from '../../accounts/ways-in.js';
import { Config } from '../../config/config.js';
import { TokenKeys } from '../../crypto/token-keys.js';
import { withoutPlace } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import { nameFrom } from '../../values/names.js';
import { PasskeyCeremonies } from '../passkeys/passkey-ceremonies.js';
import type { Purpose } from '../passkeys/passkey-ceremonies.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { BrowserSessions } from './browser-sessions.js';
import type { CurrentSession } from './browser-sessions.js';
import { DoneNotices } from './done-notices.js';
import { FormBody, textOf } from './form-body.js';
import type { Form } from './form-body.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import { redirect } from './pages.js';
import type { Done } from './pages.js';
import { CONFIRM_PATH, SECURITY_PATH } from './page-paths.js';
import { SecurityPage } from './security-page.js';
import type { Refused } from './security-page.js';
import { ENGLISH } from './texts/texts.js';

const LONGEST_NAME = 60;

/** When to try again if too many sign-ins are in progress. */
const BUSY_SECONDS = 2;

/** Changes to how a member signs in, below `/account/security`; each requires a sign-in within the last five minutes. */
@Controller('account/security')
@Page()
export class SecurityController {
  readonly #waysIn: WaysIn;
  readonly #keys: TokenKeys;

  constructor(
    private readonly csrf: Csrf,
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly done: DoneNotices,
    private readonly page: SecurityPage,
    private readonly signIn: SignIn,
    private readonly devices: DeviceCookies,
    dataSource: DataSource,
    config: Config,
  ) {
    this.#waysIn = new WaysIn(dataSource);
    this.#keys = new TokenKeys(config.secrets);
  }

  /** Sends the options for `navigator.credentials.create`; 409 if the member has to authenticate again first. */
  @Post('passkeys/options')
  async passkeyOptions(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const { session, user } = await this.#signedIn(request, response, form);
    const ways = await this.#waysIn.find(user.id, session.loginTs ?? 0);
    if (ways?.confirmed !== true) {
      response.status(409).json({ confirm: CONFIRM_PATH });
      return;
    }
    const options = await this.ceremonies.registrationOptions(user.id, user, this.#purpose(request, session));
    response.status(200).json(options);
  }

  @Post('passkeys')
  async addPasskey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const current = await this.#signedIn(request, response, form);
    const purpose = this.#purpose(request, current.session);
    await this.#change(request, response, current, ['passkey-added', 'notAdded'], (by) =>
      this.ceremonies.register(form.credential, nameOf(form.name), by, purpose),
    );
  }

  @Post('passkeys/:passkey/remove')
  async removePasskey(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
    @Param('passkey') passkeyId: string,
  ): Promise<void> {
    const current = await this.#signedIn(request, response, form);
    if (!/^[1-9]\d{0,14}$/.test(passkeyId)) throw new PageFault(400, 'malformed');
    await this.#change(request, response, current, ['passkey-removed', 'notRemoved'], (by) =>
      this.#waysIn.removePasskey(by, Number(passkeyId)),
    );
  }

  @Post('password/off')
  async switchPasswordOff(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const current = await this.#signedIn(request, response, form);
    await this.#change(request, response, current, ['password-off', 'notSwitched'], (by) =>
      this.#waysIn.switchPassword(by, false),
    );
  }

  @Post('password/on')
  async switchPasswordOn(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const current = await this.#signedIn(request, response, form);
    await this.#change(request, response, current, ['password-on', 'notSwitched'], (by) =>
      this.#waysIn.switchPassword(by, true),
    );
  }

  /** Checks the old password under the sign-in throttle, although the member is signed in. */
  @Post('password')
  async changePassword(
    @Req() request: Request,
    @Res() response: Response,
    @FormBody() form: Form,
  ): Promise<void> {
    const current = await this.#signedIn(request, response, form);
    const { session, user } = current;
    const ways = await this.#waysIn.find(user.id, session.loginTs ?? 0);
    if (ways?.confirmed !== true) {
      redirect(response, CONFIRM_PATH);
      return;
    }
    const [old, wanted] = [textOf(form.current_password), textOf(form.new_password)];
    const refused = await this.#refusalOf(request, user.username, old, wanted);
    if (refused) {
      if (refused.retryAfterSeconds !== undefined)
        response.set('Retry-After', String(refused.retryAfterSeconds));
      await this.page.send(request, response, current, refused);
      return;
    }
    const passwordHash = await withoutPlace(request, () => this.signIn.hashNew(wanted));
    const kept = form.end_others === 'yes' ? this.#keys.keysOf('Session.uid', session.uid) : undefined;
    await this.#change(request, response, current, ['password-changed', 'notChanged'], (by) =>
      this.#waysIn.changePassword(by, passwordHash, kept),
    );
  }

  /** @returns why the password cannot be changed. The old one is checked last, and guessing at it is throttled. */
  async #refusalOf(
    request: Request,
    username: string,
    old: string,
    wanted: string,
  ): Promise<Refused | undefined> {
    const fault = passwordFault(wanted, username) ?? (old === wanted ? 'same' : undefined);
    if (fault !== undefined) return { status: 400, fault };
    const result = await withoutPlace(request, () =>
      this.signIn.attempt({
        username,
        password: old,
        ip: addressOf(request),
        deviceOf: (userId) => this.devices.find(request, userId),
        confirms: true,
      }),
    );
    switch (result.outcome) {
      case 'signed-in':
        return undefined;
      case 'invalid':
        return { status: 401, fault: 'wrongPassword' };
      case 'throttled':
        return { status: 429, fault: 'throttled', retryAfterSeconds: result.retryAfterSeconds };
      case 'busy':
        return { status: 503, fault: 'throttled', retryAfterSeconds: BUSY_SECONDS };
    }
  }

  /** Makes a change, and shows the notice `done` after success, or `fault` after failure. */
  async #change(
    request: Request,
    response: Response,
    current: CurrentSession,
    [done, fault]: readonly [Done, Refused['fault']],
    change: (by: SignedInMember) => Promise<boolean | number | undefined>,
  ): Promise<void> {
    const { session, user } = current;
    const { signIns, upstream } = this.database.current!;
    try {
      const changed = await change({
        userId: user.id,
        at: session.loginTs ?? 0,
        validSince: signIns.get(user.id) ?? null,
        upstream: upstream !== undefined,
        ip: addressOf(request) ?? null,
      });
      if (changed === false || changed === undefined) {
        await this.page.send(request, response, current, { status: 409, fault });
        return;
      }
      this.done.leave(response, done, changed === true ? undefined : changed);
      redirect(response, SECURITY_PATH);
    } catch (error) {
      if (!(error instanceof Unconfirmed)) throw error;
      redirect(response, CONFIRM_PATH);
    }
  }

  async #signedIn(request: Request, response: Response, form: Form): Promise<CurrentSession> {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
    const current = await this.sessions.current(request, response);
    if (!current) throw new PageFault(401, 'signedOut');
    return current;
  }

  /** Binds a passkey registration to the browser and session that requested it. */
  #purpose(request: Request, { uid }: CurrentSession['session']): Purpose {
    if (!this.ceremonies.areOffered) throw new PageFault(400, 'malformed');
    return { browser: this.csrf.browserOf(request)!, of: `session ${uid}` };
  }
}

/** The member's name for a passkey, as one line, cut to {@link LONGEST_NAME}. */
function nameOf(value: Form[string]): string {
  return nameFrom(textOf(value), LONGEST_NAME) || ENGLISH.security.suggested;
}
