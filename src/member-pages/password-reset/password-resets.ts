import { Controller, Get, Injectable, Param, Post, Res, type OnApplicationShutdown } from '@nestjs/common';
import type { Response } from 'express';
import { Csrf, DeviceCookies } from '../../accounts/browser-cookies.js';
import { Busy, passwordFault, type PasswordFault } from '../../accounts/passwords/passwords.js';
import { signInOriginOf, type SignInOrigin } from '../../accounts/sign-in/sign-in-origin.js';
import { SignIn } from '../../accounts/sign-in/sign-in.js';
import { SignInMethods, type ShownPasskey } from '../../accounts/sign-in/sign-in-methods.js';
import { eventValues, recordAlone, recordEventIf } from '../../audit/audit.js';
import { OneTimeStates } from '../../authorization-server/adapters/state.adapter.js';
import { LIFETIMES } from '../../authorization-server/lifetimes.js';
import { Config } from '../../config/config.js';
import { randomBytes } from '../../crypto/random.js';
import { eitherOf, TokenKeys } from '../../crypto/hmac.js';
import { Database } from '../../database/database.js';
import { endedBy, keyed, unexpired } from '../../database/sql.js';
import { Logger } from '../../runtime/logger.js';
import { Mailer } from '../../runtime/mailer.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import { isStorable } from '../../values/string-rules.js';
import type { PageOf } from '../rendering/page-contents.js';
import { NEW_PASSWORD_PATH, Pages, redirect, RESET_PATH, SECURITY_PATH } from '../rendering/pages.js';
import { fill, chooseLanguage, textsIn } from '../rendering/wording.js';
import { fieldText, OwnForm, passwordIn, ServesPages, type Form } from '../requests/page-requests.js';
import { PasskeyCeremonies } from '../sign-in/passkey-ceremonies.js';

const MODEL = 'PasswordReset';

/** Minimum seconds between emails to an address. */
const QUIET_SECONDS = 300;
/** Maximum emails to an address per day. */
const MAX_PER_DAY = 5;
const DAY_SECONDS = 86_400;

/** Maximum emails in progress; further requests get {@link Busy}. */
const MAX_PENDING = 50;

const RESETTABLE = 'u.disabled_at IS NULL AND u.password_hash IS NOT NULL AND u.password_off_at IS NULL';

/** Starts a reset if the address has a free daily slot, and took none for {@link QUIET_SECONDS}. Of concurrent resets, only one starts. */
const BEGIN = `WITH member AS (
  SELECT u.id, u.username, u.email FROM users u
  WHERE u.folded_username = fold_case($1) AND u.email IS NOT NULL AND ${RESETTABLE} FOR SHARE
), places AS (
  SELECT n, place.key, taken.expires_at FROM member CROSS JOIN generate_series(1, ${MAX_PER_DAY}) AS n
  CROSS JOIN LATERAL (SELECT sha256(convert_to(concat_ws(' ', '${MODEL}', n, lower(email)), 'UTF8')) AS key) AS place
  LEFT JOIN oauth_state taken ON taken.key = place.key AND ${unexpired('taken.expires_at')}
), counted AS (
  INSERT INTO oauth_state (key, model, user_id, expires_at)
  SELECT key, 'ReplayDetection', member.id, now() + make_interval(secs => ${DAY_SECONDS}) FROM places, member
  WHERE expires_at IS NULL AND NOT EXISTS (
    SELECT FROM places WHERE expires_at > now() + make_interval(secs => ${DAY_SECONDS - QUIET_SECONDS}))
  ORDER BY n LIMIT 1
  ON CONFLICT (key) DO UPDATE SET user_id = EXCLUDED.user_id, expires_at = EXCLUDED.expires_at WHERE oauth_state.expires_at <= now()
  RETURNING user_id
), begun AS (
  INSERT INTO oauth_state (key, model, user_id, expires_at)
  SELECT $2, '${MODEL}', user_id, now() + make_interval(secs => ${LIFETIMES.passwordReset}) FROM counted RETURNING user_id
) SELECT id, username, email FROM member WHERE EXISTS (SELECT FROM begun)`;

const FIND = `SELECT u.id, u.username FROM oauth_state s JOIN ${keyed('users u', 'u.id = s.user_id')}
WHERE s.key IN ($1, $2) AND s.model = '${MODEL}' AND ${unexpired('s.expires_at')} AND ${RESETTABLE}`;

/** Model for encrypting a used link's record, with which a repeated form gets the same response again. */
const USED = 'UsedPasswordReset';
const FIND_USED = `SELECT key, payload FROM oauth_state WHERE key IN ($1, $2) AND model = 'ReplayDetection' AND ${unexpired()}`;
const FIND_MEMBER = `SELECT u.id, u.username FROM users u WHERE u.id = $1 AND ${RESETTABLE}`;

/** Uses up the link ($4, $5: its record), sets the password, and ends earlier sign-ins. */
const FINISH = `WITH taken AS (
  DELETE FROM oauth_state WHERE key IN ($1, $2) AND model = '${MODEL}' AND ${unexpired()} RETURNING user_id
), used AS (
  INSERT INTO oauth_state (key, model, payload, expires_at)
  SELECT $4, 'ReplayDetection', $5, now() + interval '10 minutes' FROM taken
), changed AS (
  UPDATE users u SET password_hash = $3, sign_ins_valid_since = clock_timestamp() FROM taken
  WHERE u.id = taken.user_id AND ${RESETTABLE} RETURNING u.id
), told AS (${recordEventIf('changed', 6)}) SELECT id, ${endedBy(`'user'`)} FROM changed`;

/** Password resets by email. The response to a request reveals neither whether a member exists nor whether they have an email address. */
@Injectable()
export class PasswordResets implements OnApplicationShutdown {
  readonly #pending = new Set<Promise<void>>();

  constructor(
    private readonly config: Config,
    private readonly database: Database,
    private readonly signIn: SignIn,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly logger: Logger,
    private readonly mailer: Mailer,
    private readonly keys: TokenKeys,
    private readonly signInMethods: SignInMethods,
    private readonly states: OneTimeStates,
  ) {}

  /** Sends an email if possible, but does not wait for it, so that the response time reveals nothing. @throws Busy */
  begin(username: string, language: string, ip: string | undefined): void {
    if (this.#pending.size >= MAX_PENDING) throw new Busy();
    const sent = this.#send(username, language, ip)
      .catch((error: unknown) =>
        this.logger.error({ reason: (error as Error).name }, 'an email could not be sent'),
      )
      .finally(() => this.#pending.delete(sent));
    this.#pending.add(sent);
  }

  /** @returns the link's member; undefined if the link is unknown, used or expired, or its member is disabled or has no enabled password */
  async memberOf(token: string): Promise<{ id: number; username: string } | undefined> {
    const keys = eitherOf(this.keys.keysOf(MODEL, token));
    const [member] = await this.database.prepared<{ id: number; username: string }>(FIND, keys);
    return member;
  }

  /** @returns the fault of the password or link; on success, the member's id and the passkeys that still work @throws Busy */
  async finish(
    token: string,
    password: string,
    from: SignInOrigin,
  ): Promise<PasswordFault | 'expired' | { passkeys: ShownPasskey[]; userId: number }> {
    const member = await this.memberOf(token);
    if (!member) return this.#finishAgain(token, password, from);
    const fault = passwordFault(password, member.username);
    if (fault !== undefined) return fault;
    const passwordHash = await this.signIn.hashNew(password);
    const keys = eitherOf(this.keys.keysOf(MODEL, token));
    const event = {
      type: 'user.password_set',
      actor: 'user',
      userId: member.id,
      ip: from.ip ?? null,
      details: { sessions_kept: false },
    } as const;
    // Queried first, so that the link stays unused if this query fails.
    const passkeys = await this.#passkeysOf(member.id);
    await this.signIn.unblock(member.username);
    const used = this.states.seal(USED, token, { id: member.id });
    const values = [...keys, passwordHash, used.key, used.payload, ...eventValues(event)];
    if ((await this.database.prepared(FINISH, values)).length > 0) return { passkeys, userId: member.id };
    return this.#finishAgain(token, password, from);
  }

  /** Repeats the response to a used link if the password is the current one; another password counts as a failed sign-in. */
  async #finishAgain(token: string, password: string, from: SignInOrigin) {
    const used = await this.states.find<{ id: number }>(FIND_USED, USED, token);
    const [member] = used
      ? await this.database.prepared<{ id: number; username: string }>(FIND_MEMBER, [used.id])
      : [];
    if (!member) return 'expired';
    const { username, id: userId } = member;
    const result = await this.signIn.attempt({ username, password, ...from, confirms: true });
    return 'userId' in result ? { passkeys: await this.#passkeysOf(userId), userId } : 'expired';
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Lists passkeys, so that the member can remove the passkeys of a lost or stolen device. */
  async #passkeysOf(userId: number): Promise<ShownPasskey[]> {
    return this.ceremonies.areOffered ? this.signInMethods.listPasskeys(userId) : [];
  }

  async #send(username: string, language: string, ip: string | undefined): Promise<void> {
    if (!isStorable(username) || [...username].length > 100) return;
    const token = randomBytes(32).toString('base64url');
    const [member] = await this.database.prepared<{ id: number; username: string; email: string }>(BEGIN, [
      username,
      this.keys.keyOf(MODEL, token),
    ]);
    if (!member) return;
    const { publicUrl, platformName } = this.config;
    const words = {
      platform: platformName ?? new URL(publicUrl).host,
      username: member.username,
      link: `${publicUrl}${NEW_PASSWORD_PATH}/${token}`,
    };
    const { subject, text, passkeys } = textsIn(language).passwordReset.mail;
    const names = (await this.#passkeysOf(member.id)).map(({ name }) => `- ${name}`);
    await this.mailer.send({
      to: member.email,
      subject: fill(subject, words),
      text:
        fill(text, words) +
        (names.length === 0
          ? ''
          : `\n${fill(passkeys, { page: `${publicUrl}${SECURITY_PATH}` })}\n\n${names.join('\n')}\n`),
    });
    const event = {
      type: 'user.password_reset_sent',
      actor: 'user',
      userId: member.id,
      ip: ip ?? null,
    } as const;
    await recordAlone((text, values) => this.database.prepared(text, values), event);
  }
}

type ResetPage = Omit<PageOf<'password-reset'>, 'name' | 'csrf'>;

/** The page that requests the email, and the page that the email's link opens; see {@link resetsPasswords}. */
@Controller('account')
@ServesPages()
export class PasswordResetController {
  constructor(
    private readonly csrf: Csrf,
    private readonly pages: Pages,
    private readonly resets: PasswordResets,
    private readonly devices: DeviceCookies,
  ) {}

  @Get('password-reset')
  ask(@Res() response: Response): void {
    this.#show(response, 200, { step: 'ask' });
  }

  /** Sends the same response for every username. */
  @Post('password-reset/send')
  send(@Res() response: Response, @OwnForm() form: Form): void {
    const request = response.req;
    const language = chooseLanguage(undefined, request.headers);
    this.resets.begin(fieldText(form.username), language, addressOf(request));
    redirect(response, `${RESET_PATH}/sent`);
  }

  @Get('password-reset/sent')
  sent(@Res() response: Response): void {
    this.#show(response, 200, { step: 'sent' });
  }

  /** Shows the page, but does not use up the link, since email scanners open links. */
  @Get('new-password/:token')
  async choose(@Res() response: Response, @Param('token') token: string): Promise<void> {
    const member = await this.resets.memberOf(token);
    if (!member) this.#show(response, 410, { step: 'expired' });
    else this.#show(response, 200, { step: 'choose', token, username: member.username });
  }

  @Post('new-password/:token/set')
  async set(@Res() response: Response, @OwnForm() form: Form, @Param('token') token: string): Promise<void> {
    const request = response.req;
    const result = await withoutSlot(request, () =>
      this.resets.finish(token, passwordIn(form.new_password), signInOriginOf(request)),
    );
    if (typeof result === 'object') {
      // Sets a device cookie, so that guesses from elsewhere cannot block the sign-in with the new password.
      this.devices.issue(request, response, result.userId);
      this.#show(response, 200, { step: 'done', passkeys: result.passkeys });
    } else if (result === 'expired') this.#show(response, 410, { step: 'expired' });
    else this.#show(response, 400, { step: 'choose', token, fault: result });
  }

  #show(response: Response, status: number, page: ResetPage): void {
    const csrf = this.csrf.token(response.req, response);
    this.pages.send(response, status, { name: 'password-reset', csrf, ...page });
  }
}
