import { Controller, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Csrf } from '../../accounts/browsers/csrf.js';
import { DeviceCookies } from '../../accounts/browsers/device-cookies.js';
import { passwordFault } from '../../accounts/passwords/password-rules.js';
import { SignIn } from '../../accounts/sign-in/sign-in.js';
import { Unconfirmed, SignInMethods, type SignedInMember } from '../../accounts/sign-in/sign-in-methods.js';
import { TokenKeys } from '../../crypto/token-keys.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import { nameFrom } from '../../values/names.js';
import { PasskeyCeremonies, type CeremonyPurpose } from '../sign-in/passkey-ceremonies.js';
import { OauthDatabase } from '../../authorization-server/requests/oauth-database.js';
import { AccountPages, type Member, type Sender } from './account-pages.js';
import { FormSender } from './member.decorators.js';
import { fieldText, type Form } from '../requests/form-body.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { ServesPages } from '../requests/page.decorator.js';
import { redirect } from '../rendering/pages.js';
import type { FlashMessage } from '../rendering/page-contents.js';
import { CONFIRM_PATH, SECURITY_PATH } from '../rendering/page-paths.js';
import { SecurityPage, type RejectedChange } from './security-page.js';
import { ENGLISH } from '../rendering/texts/texts.js';

const LONGEST_NAME = 60;

/** When to try again if too many sign-ins are in progress. */
const BUSY_SECONDS = 2;

/** Changes to how a member signs in, below `/account/security`; each requires a sign-in within the last five minutes. */
@Controller('account/security')
@ServesPages()
export class SecurityController {
  constructor(
    private readonly csrf: Csrf,
    private readonly account: AccountPages,
    private readonly database: OauthDatabase,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly page: SecurityPage,
    private readonly signIn: SignIn,
    private readonly devices: DeviceCookies,
    private readonly signInMethods: SignInMethods,
    private readonly keys: TokenKeys,
  ) {}

  /** Sends the options for `navigator.credentials.create`; 409 if the member has to authenticate again first. */
  @Post('passkeys/options')
  async passkeyOptions(@Res() response: Response, @FormSender() member: Sender): Promise<void> {
    const { session, user } = member;
    const confirm = await this.account.confirmationOf('security', member);
    if (confirm !== undefined) {
      response.status(409).json({ confirm });
      return;
    }
    const options = await this.ceremonies.registrationOptions(
      user.id,
      user,
      this.#purpose(response, session),
    );
    response.status(200).json(options);
  }

  @Post('passkeys')
  async addPasskey(@Res() response: Response, @FormSender() member: Sender): Promise<void> {
    const purpose = this.#purpose(response, member.session);
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
    const { session, user, form } = member;
    const [old, wanted] = [fieldText(form.current_password), fieldText(form.new_password)];
    const request = response.req;
    const refused = await this.#refusalOf(request, user.username, old, wanted);
    if (refused) {
      if (refused.retryAfterSeconds !== undefined)
        response.set('Retry-After', String(refused.retryAfterSeconds));
      await this.page.send(response, member, refused);
      return;
    }
    const passwordHash = await withoutSlot(request, () => this.signIn.hashNew(wanted));
    const kept = form.end_others === 'yes' ? this.keys.keysOf('Session.uid', session.uid) : undefined;
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
    const result = await withoutSlot(request, () =>
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
        await this.page.send(response, member, { status: 409, fault });
        return;
      }
      this.account.redirectDone(response, SECURITY_PATH, done, changed === true ? undefined : changed);
    } catch (error) {
      if (!(error instanceof Unconfirmed)) throw error;
      redirect(response, CONFIRM_PATH);
    }
  }

  /** Binds a passkey registration to the browser and session that requested it. */
  #purpose({ req: request }: Response, { uid }: Member['session']): CeremonyPurpose {
    if (!this.ceremonies.areOffered) throw new PageFault(400, 'malformed');
    return { browser: this.csrf.browserOf(request)!, of: `session ${uid}` };
  }
}

/** The member's name for a passkey, as one line, cut to {@link LONGEST_NAME}. */
function nameOf(value: Form[string]): string {
  return nameFrom(fieldText(value), LONGEST_NAME) || ENGLISH.security.suggested;
}
