import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { passwordFault } from '../../accounts/passwords/password-rules.js';
import { SignIn } from '../../accounts/sign-in/sign-in.js';
import {
  MOST_PASSKEYS,
  SignInMethods,
  Unconfirmed,
  type SignedInMember,
} from '../../accounts/sign-in/sign-in-methods.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { nameFrom } from '../../values/names.js';
import { SignInForms } from '../sign-in/sign-in-forms.js';
import { PasskeyCeremonies } from '../sign-in/passkey-ceremonies.js';
import { OauthDatabase } from '../../authorization-server/requests/oauth-database.js';
import { AccountPages, FormSender, Visitor, type Member, type Sender } from './account-pages.js';
import { fieldText, type Form } from '../requests/form-body.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { ServesPages } from '../requests/page.decorator.js';
import { redirect } from '../rendering/pages.js';
import type { FlashMessage, PageOf } from '../rendering/page-contents.js';
import { SECURITY_PATH } from '../rendering/page-paths.js';
import { ENGLISH, languageOf, textsIn } from '../rendering/texts/texts.js';
import { browserOf } from '../rendering/user-agent.js';
import { fill } from '../rendering/wording.js';

const LONGEST_NAME = 60;

/** When to try again if too many sign-ins are in progress. */
const BUSY_SECONDS = 2;

const CONFIRM_PATH = `${SECURITY_PATH}/confirm`;

/** A change that was refused, as the page shows it. */
interface RejectedChange {
  readonly status: 400 | 401 | 409 | 429 | 503;
  readonly fault: NonNullable<PageOf<'security'>['fault']>;
  readonly retryAfterSeconds?: number;
}

/** How a member signs in, and changes to it; each requires a sign-in within the last five minutes. */
@Controller('account/security')
@ServesPages()
export class SecurityController {
  constructor(
    private readonly account: AccountPages,
    private readonly database: OauthDatabase,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly signIn: SignIn,
    private readonly forms: SignInForms,
    private readonly signInMethods: SignInMethods,
  ) {}

  @Get()
  async show(@Res() response: Response, @Visitor('security') visitor: Member): Promise<void> {
    await this.#show(response, visitor);
  }

  /** Sends the options for `navigator.credentials.create`; 409 if the member has to authenticate again first. */
  @Post('passkeys/options')
  async passkeyOptions(@Res() response: Response, @FormSender() member: Sender): Promise<void> {
    const confirm = await this.account.confirmationOf('security', member);
    if (confirm !== undefined) {
      response.status(409).json({ confirm });
      return;
    }
    const purpose = this.ceremonies.purposeFor(response.req, `session ${member.session.uid}`);
    response.status(200).json(await this.ceremonies.registrationOptions(member.user, purpose));
  }

  @Post('passkeys')
  async addPasskey(@Res() response: Response, @FormSender() member: Sender): Promise<void> {
    const purpose = this.ceremonies.purposeFor(response.req, `session ${member.session.uid}`);
    await this.#change(response, member, ['passkey-added', 'notAdded'], (by) =>
      this.ceremonies.register(member.form.credential, nameOf(member.form.name), by, purpose),
    );
  }

  @Post('passkeys/:passkey/remove')
  async removePasskey(
    @Res() response: Response,
    @FormSender() member: Sender,
    @Param('passkey') passkeyId: string,
  ): Promise<void> {
    if (!/^[1-9]\d{0,14}$/.test(passkeyId)) throw new PageFault(400, 'malformed');
    await this.#change(response, member, ['passkey-removed', 'notRemoved'], (by) =>
      this.signInMethods.removePasskey(by, Number(passkeyId)),
    );
  }

  @Post('password/off')
  async switchPasswordOff(@Res() response: Response, @FormSender() member: Sender): Promise<void> {
    await this.#change(response, member, ['password-off', 'notSwitched'], (by) =>
      this.signInMethods.switchPassword(by, false),
    );
  }

  @Post('password/on')
  async switchPasswordOn(@Res() response: Response, @FormSender() member: Sender): Promise<void> {
    await this.#change(response, member, ['password-on', 'notSwitched'], (by) =>
      this.signInMethods.switchPassword(by, true),
    );
  }

  /** Checks the old password under the sign-in throttle, although the member is signed in. */
  @Post('password')
  async changePassword(@Res() response: Response, @FormSender('security') member: Sender): Promise<void> {
    const { user, form } = member;
    const [old, wanted] = [fieldText(form.current_password), fieldText(form.new_password)];
    const request = response.req;
    const refused = await this.#refusalOf(request, user.username, old, wanted);
    if (refused) {
      if (refused.retryAfterSeconds !== undefined)
        response.set('Retry-After', String(refused.retryAfterSeconds));
      await this.#show(response, member, refused);
      return;
    }
    const passwordHash = await withoutSlot(request, () => this.signIn.hashNew(wanted));
    const kept = form.end_others === 'yes' ? member.sessionKeys : undefined;
    await this.#change(response, member, ['password-changed', 'notChanged'], (by) =>
      this.signInMethods.changePassword(by, passwordHash, kept),
    );
  }

  /** @returns why the password cannot be changed. The old one is checked last, and guessing at it is throttled. */
  async #refusalOf(
    request: Response['req'],
    username: string,
    old: string,
    wanted: string,
  ): Promise<RejectedChange | undefined> {
    const fault = passwordFault(wanted, username) ?? (old === wanted ? 'same' : undefined);
    if (fault !== undefined) return { status: 400, fault };
    const result = await this.forms.check(request, username, old, true);
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
    response: Response,
    member: Member,
    [done, fault]: readonly [FlashMessage, RejectedChange['fault']],
    change: (by: SignedInMember) => Promise<boolean | number | undefined>,
  ): Promise<void> {
    const { session, user } = member;
    const { signIns, upstream } = this.database.current!;
    try {
      const changed = await change({
        userId: user.id,
        at: session.loginTs ?? 0,
        validSince: signIns.get(user.id) ?? null,
        upstream: upstream !== undefined,
        ip: member.by.ip,
      });
      if (changed === false || changed === undefined) {
        await this.#show(response, member, { status: 409, fault });
        return;
      }
      this.account.redirectDone(response, SECURITY_PATH, done, changed === true ? undefined : changed);
    } catch (error) {
      if (!(error instanceof Unconfirmed)) throw error;
      redirect(response, CONFIRM_PATH);
    }
  }

  /** @param refused the change that was just refused, with its status */
  async #show(response: Response, member: Member, refused: Partial<RejectedChange> = {}): Promise<void> {
    const { status, ...said } = refused;
    const { session, user } = member;
    const ways = await this.signInMethods.find(user.id, session.loginTs ?? 0);
    if (!ways) throw new PageFault(401, 'signedOut');
    const { passkeys, password, confirmed } = ways;
    const upstream = this.database.current!.upstream !== undefined;
    const page = {
      name: 'security',
      ...said,
      confirm: confirmed ? undefined : CONFIRM_PATH,
      passkeys: this.ceremonies.areOffered
        ? {
            suggested: suggestedName(response.req),
            items: passkeys,
            removable: upstream || password === 'on' || passkeys.length > 1,
            full: passkeys.length >= MOST_PASSKEYS,
          }
        : undefined,
      password,
      switchable: password === 'off' || upstream || passkeys.length > 0,
    } as const;
    this.account.send(response, member, page, status);
  }
}

/** `Chrome on Android` */
function suggestedName({ headers }: Request): string {
  const t = textsIn(languageOf(undefined, headers['accept-language']));
  const { browser, system } = browserOf(headers['user-agent'] ?? null);
  if (browser === undefined) return t.security.suggested;
  return system === undefined ? browser : fill(t.sessions.browserOn, { browser, system });
}

/** The member's name for a passkey, as one line, cut to {@link LONGEST_NAME}. */
function nameOf(value: Form[string]): string {
  return nameFrom(fieldText(value), LONGEST_NAME) || ENGLISH.security.suggested;
}
