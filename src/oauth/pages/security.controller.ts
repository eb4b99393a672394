import { Controller, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import { Unconfirmed, WaysIn } from '../../accounts/ways-in.js';
import type { SignedInMember } from '../../accounts/ways-in.js';
import { addressOf } from '../../values/network.js';
import { isStorable } from '../../values/string-rules.js';
import { PasskeyCeremonies } from '../passkeys/passkey-ceremonies.js';
import type { Purpose } from '../passkeys/passkey-ceremonies.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { BrowserSessions } from './browser-sessions.js';
import type { CurrentSession } from './browser-sessions.js';
import { DoneNotices } from './done-notices.js';
import { FormBody } from './form-body.js';
import type { Form } from './form-body.js';
import { PageFault } from './page-faults.js';
import { Page } from './page.decorator.js';
import { redirect } from './pages.js';
import type { Done, Page as AnyPage } from './pages.js';
import { CONFIRM_PATH, SECURITY_PATH, SecurityPage } from './security-page.js';
import { TEXTS } from './texts/texts.js';

const LONGEST_NAME = 60;

/** What members change of how they sign in, below `/account/security`; each change wants a sign-in of the last five minutes. */
@Controller('account/security')
@Page()
export class SecurityController {
  readonly #waysIn: WaysIn;

  constructor(
    private readonly csrf: Csrf,
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly done: DoneNotices,
    private readonly page: SecurityPage,
    dataSource: DataSource,
  ) {
    this.#waysIn = new WaysIn(dataSource);
  }

  /** What `navigator.credentials.create` is told; 409 where the member has to prove first who they are. */
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

  /** @param told what the page says where it was done, and where it was not */
  async #change(
    request: Request,
    response: Response,
    current: CurrentSession,
    [done, fault]: readonly [Done, Extract<AnyPage, { name: 'security' }>['fault']],
    change: (by: SignedInMember) => Promise<boolean>,
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
      if (!changed) {
        await this.page.send(request, response, current, fault);
        return;
      }
      this.done.leave(response, done);
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

  /** A passkey is added by the browser and in the session that asked for it. */
  #purpose(request: Request, { uid }: CurrentSession['session']): Purpose {
    if (!this.ceremonies.areOffered) throw new PageFault(400, 'malformed');
    return { browser: this.csrf.browserOf(request)!, of: `session ${uid}` };
  }
}

/** What the member calls a passkey: one line, as long as it may be. */
function nameOf(value: Form[string]): string {
  const line =
    typeof value === 'string' && isStorable(value) ? value.replace(/[\s\p{Cc}]+/gu, ' ').trim() : '';
  return line === '' ? TEXTS.en.security.suggested : [...line].slice(0, LONGEST_NAME).join('');
}
