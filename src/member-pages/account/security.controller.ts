import { Controller, Get, Param, Post } from '@nestjs/common';
import type { Request } from 'express';
import { passwordFault } from '../../accounts/passwords/passwords.js';
import { browserOf } from '../../accounts/sign-in/sign-in-origin.js';
import { SignIn } from '../../accounts/sign-in/sign-in.js';
import {
  MAX_PASSKEYS,
  SignInMethods,
  Unconfirmed,
  type SignedInMember,
} from '../../accounts/sign-in/sign-in-methods.js';
import type { NoticeType } from '../../audit/notices.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { Config } from '../../config/config.js';
import { OauthDatabase } from '../../authorization-server/requests/oauth-database.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { nameFrom } from '../../values/string-rules.js';
import { MUTABLE, NoticeChoices } from '../notices/notice-choices.js';
import type { FlashMessage, PageOf } from '../rendering/page-contents.js';
import { SECURITY_PATH } from '../rendering/pages.js';
import { ENGLISH, fill, chooseLanguage, textsIn } from '../rendering/wording.js';
import { fieldText, passwordIn, ServesPages, type Form } from '../requests/page-requests.js';
import { PasskeyCeremonies } from '../sign-in/passkey-ceremonies.js';
import { SIGN_IN_STATUSES, SignInForms } from '../sign-in/sign-in-steps.js';
import { FormSender, Visitor, type Member, type Sender } from './account-pages.js';

const MAX_NAME_LENGTH = 60;

const CONFIRM_PATH = `${SECURITY_PATH}/confirm`;

interface RejectedChange {
  readonly status: number;
  readonly fault: NonNullable<PageOf<'security'>['fault']>;
  readonly retryAfterSeconds?: number | undefined;
}

/** A member's sign-in methods and email notices; each change requires a sign-in within the last five minutes. */
@Controller('account/security')
@ServesPages()
export class SecurityController {
  constructor(
    private readonly database: OauthDatabase,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly signIn: SignIn,
    private readonly forms: SignInForms,
    private readonly signInMethods: SignInMethods,
    private readonly noticeChoices: NoticeChoices,
    private readonly config: Config,
  ) {}

  @Get()
  async show(@Visitor('security') visitor: Member): Promise<void> {
    await this.#show(visitor);
  }

  /** Sends options for `navigator.credentials.create`; 409 if the member must authenticate again first. */
  @Post('passkeys/options')
  async passkeyOptions(@FormSender() member: Sender): Promise<void> {
    const confirm = await member.confirmationOn('security');
    if (confirm !== undefined) {
      member.response.status(409).json({ confirm });
      return;
    }
    const { req: request } = member.response;
    const options = await this.ceremonies.registrationOptions(member.user, request, sessionOf(member));
    member.response.status(200).json(options);
  }

  @Post('passkeys')
  async addPasskey(@FormSender() member: Sender): Promise<void> {
    this.ceremonies.requireOffered();
    const { form, response } = member;
    await this.#change(member, ['passkey-added', 'notAdded'], (by) =>
      this.ceremonies.register(form.credential, nameOf(form.name), by, response.req, sessionOf(member)),
    );
  }

  @Post('passkeys/:passkey/remove')
  async removePasskey(@FormSender() member: Sender, @Param('passkey') passkeyId: string): Promise<void> {
    if (!/^[1-9]\d{0,14}$/.test(passkeyId)) throw new PageFault(400, 'malformed');
    await this.#change(member, ['passkey-removed', 'notRemoved'], (by) =>
      this.signInMethods.removePasskey(by, Number(passkeyId)),
    );
  }

  @Post('password/off')
  async switchPasswordOff(@FormSender() member: Sender): Promise<void> {
    await this.#change(member, ['password-off', 'notSwitched'], (by) =>
      this.signInMethods.switchPassword(by, false),
    );
  }

  @Post('password/on')
  async switchPasswordOn(@FormSender() member: Sender): Promise<void> {
    await this.#change(member, ['password-on', 'notSwitched'], (by) =>
      this.signInMethods.switchPassword(by, true),
    );
  }

  get #notices(): readonly NoticeType[] {
    return this.config.reviewsApps ? MUTABLE : MUTABLE.filter((notice) => notice !== 'client.reviewed');
  }

  @Post('notices')
  async chooseNotices(@FormSender('security') member: Sender): Promise<void> {
    const { form, user, by } = member;
    const wanted = [form.notice ?? []].flat();
    if (!wanted.every((notice) => (MUTABLE as readonly string[]).includes(notice)))
      throw new PageFault(400, 'malformed');
    const muted = this.#notices.filter((notice) => !wanted.includes(notice));
    await this.noticeChoices.choose(user.id, muted, by.ip);
    member.redirect(SECURITY_PATH, 'notices-chosen');
  }

  /** Changes the password. A wrong old password counts in the sign-in throttle. */
  @Post('password')
  async changePassword(@FormSender('security') member: Sender): Promise<void> {
    const { form, response } = member;
    const wanted = passwordIn(form.new_password);
    const refused = await this.#refusalOf(member, passwordIn(form.current_password), wanted);
    if (refused === 'changed') {
      member.redirect(SECURITY_PATH, 'password-changed', 0);
      return;
    }
    if (refused) {
      if (refused.retryAfterSeconds !== undefined)
        response.set('Retry-After', String(refused.retryAfterSeconds));
      await this.#show(member, refused);
      return;
    }
    const passwordHash = await withoutSlot(response.req, () => this.signIn.hashNew(wanted));
    const kept = form.end_others === 'yes' ? member.sessionKeys : undefined;
    await this.#change(member, ['password-changed', 'notChanged'], (by) =>
      this.signInMethods.changePassword(by, passwordHash, kept),
    );
  }

  /** Checks the new password, then the old. @returns undefined if both are accepted; `changed` if the new password is already set */
  async #refusalOf(
    { response, user: { username } }: Member,
    old: string,
    wanted: string,
  ): Promise<RejectedChange | 'changed' | undefined> {
    const fault = passwordFault(wanted, username) ?? (old === wanted ? 'same' : undefined);
    if (fault !== undefined) return { status: 400, fault };
    const result = await this.forms.check(response.req, username, old, true);
    if ('userId' in result) return undefined;
    const { reason, retryAfterSeconds } = result;
    if (reason === 'invalid' && (await this.signIn.hasPassword(username, wanted))) return 'changed';
    return {
      status: SIGN_IN_STATUSES[reason],
      fault: reason === 'invalid' ? 'wrongPassword' : 'throttled',
      retryAfterSeconds,
    };
  }

  async #change(
    member: Member,
    [done, fault]: readonly [FlashMessage, RejectedChange['fault']],
    change: (by: SignedInMember) => Promise<boolean | number | undefined>,
  ): Promise<void> {
    const { session, user } = member;
    const { validSince, upstream } = this.database.current!.signIn;
    try {
      const changed = await change({
        userId: user.id,
        at: session.loginTs ?? 0,
        validSince: validSince.get(user.id) ?? null,
        upstream: upstream !== undefined,
        ip: member.by.ip,
      });
      if (changed === false || changed === undefined) await this.#show(member, { status: 409, fault });
      else member.redirect(SECURITY_PATH, done, changed === true ? undefined : changed);
    } catch (error) {
      if (!(error instanceof Unconfirmed)) throw error;
      member.redirect(CONFIRM_PATH);
    }
  }

  async #show(member: Member, { status, ...said }: Partial<RejectedChange> = {}): Promise<void> {
    const { session, user, response } = member;
    const ways = await this.signInMethods.find(user.id, session.loginTs ?? 0);
    if (!ways) throw new PageFault(401, 'signedOut');
    const { passkeys, password, confirmed } = ways;
    const upstream = this.database.current!.signIn.upstream !== undefined;
    const muted = this.config.mail && (await this.noticeChoices.muted(user.id));
    const page = {
      name: 'security',
      ...said,
      confirm: confirmed ? undefined : CONFIRM_PATH,
      passkeys: this.ceremonies.areOffered
        ? {
            suggested: suggestedName(response.req),
            items: passkeys,
            removable: upstream || password === 'on' || passkeys.length > 1,
            full: passkeys.length >= MAX_PASSKEYS,
          }
        : undefined,
      notices: muted && this.#notices.map((notice) => ({ notice, muted: muted.includes(notice) })),
      password,
      switchable: password === 'off' || upstream || passkeys.length > 0,
    } as const;
    member.send(page, status);
  }
}

/** Returns the purpose to which a new passkey's challenge is bound. */
function sessionOf({ session }: Member): string {
  return `session ${session.uid}`;
}

/** Suggests a passkey's name: `Chrome on Android`. */
function suggestedName({ headers }: Request): string {
  const t = textsIn(chooseLanguage(undefined, headers));
  const { browser, system } = browserOf(headers['user-agent'] ?? null);
  if (browser === undefined) return t.security.suggested;
  return system === undefined ? browser : fill(t.sessions.browserOn, { browser, system });
}

function nameOf(value: Form[string]): string {
  return nameFrom(fieldText(value), MAX_NAME_LENGTH) || ENGLISH.security.suggested;
}
