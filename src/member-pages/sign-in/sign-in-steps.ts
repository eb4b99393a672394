import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Interaction, InteractionResults, Session } from 'oidc-provider';
import { Csrf, DeviceCookies } from '../../accounts/browser-cookies.js';
import { SignInThrottle } from '../../accounts/sign-in/sign-in-throttle.js';
import { signInOriginOf } from '../../accounts/sign-in/sign-in-origin.js';
import { SignIn, type SignedIn, type SignInFault } from '../../accounts/sign-in/sign-in.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { RevocationChannel } from '../../auth/revocation-channel.js';
import { AuthorizationServer } from '../../authorization-server/authorization-server.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { hostOf } from '../../authorization-server/ports.js';
import { isStepGone } from '../../authorization-server/provider/library.js';
import { LIFETIMES } from '../../authorization-server/lifetimes.js';
import { ROUTES, sessionCookie } from '../../authorization-server/provider/provider.js';
import type { Answer } from '../../authorization-server/requests/consents.js';
import { OauthDatabase, type Decision } from '../../authorization-server/requests/oauth-database.js';
import { endSession } from '../../authorization-server/adapters/session.adapter.js';
import { answer, OneTimeStates } from '../../authorization-server/adapters/state.adapter.js';
import { Config } from '../../config/config.js';
import { TokenKeys } from '../../crypto/hmac.js';
import { Meter } from '../../runtime/meter.js';
import type { LabelsOf } from '../../runtime/metrics.js';
import { withoutSlot } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type { PageOf, SignedInUser } from '../rendering/page-contents.js';
import { Pages, redirect, type Sending } from '../rendering/pages.js';
import { AnsweredOtherwise, fieldText, passwordIn, type Form } from '../requests/page-requests.js';
import { PasskeyCeremonies } from './passkey-ceremonies.js';

type Labels = LabelsOf<'sign_ins_total'>;

export const SIGN_IN_STATUSES = { invalid: 401, unproven: 401, throttled: 429, busy: 503 } as const;

export interface SignInRejection {
  readonly fault: SignInFault;
  readonly username?: string;
}

/** The sign-in page and its forms, for apps' requests and for account and developer pages. */
@Injectable()
export class SignInForms {
  constructor(
    private readonly config: Config,
    private readonly pages: Pages,
    private readonly csrf: Csrf,
    private readonly signIn: SignIn,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly devices: DeviceCookies,
    private readonly throttle: SignInThrottle,
    private readonly meter: Meter,
  ) {}

  show(
    response: Response,
    page: Omit<PageOf<'sign-in'>, 'name' | 'csrf' | 'login' | 'passkeys'>,
    passkeys: PageOf<'sign-in'>['passkeys'] = 'too',
    sending: Sending = {},
  ): void {
    const { reason, retryAfterSeconds } = page.fault ?? {};
    if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
    const shared = {
      name: 'sign-in',
      csrf: this.csrf.token(response.req, response),
      login: this.config.upstream?.label,
      passkeys: this.ceremonies.areOffered ? passkeys : undefined,
    } as const;
    this.pages.send(response, reason ? SIGN_IN_STATUSES[reason] : 200, { ...shared, ...page }, sending);
  }

  /** @param way label of the metric @returns the sign-in, after setting a device cookie; or the fault to show */
  withPassword(response: Response, form: Form, way: Labels['way']): Promise<SignedIn | SignInRejection> {
    const username = fieldText(form.username);
    return this.#counted(response, { way, method: 'password' }, async () => {
      const result = await this.check(response.req, username, passwordIn(form.password));
      return 'userId' in result ? result : { username: username.slice(0, 100), fault: result };
    });
  }

  /** Checks a password. @param confirms whether a signed-in member confirms a change */
  check(request: Request, username: string, password: string, confirms = false) {
    const deviceOf = (userId: number) => this.devices.find(request, userId);
    const attempt = { username, password, ...signInOriginOf(request), deviceOf, confirms };
    return withoutSlot(request, () => this.signIn.attempt(attempt));
  }

  async sendPasskeyOptions(response: Response, page: string): Promise<void> {
    response.status(200).json(await this.ceremonies.signInOptions(response.req, page));
  }

  /** Like {@link withPassword}. @throws PageFault if passkeys are not offered; Busy if too many checks from this address are in progress */
  async withPasskey(
    response: Response,
    form: Form,
    page: string,
    way: Labels['way'],
  ): Promise<SignedIn | SignInRejection> {
    const request = response.req;
    this.ceremonies.requireOffered();
    const deadline = performance.now() + this.config.signInPatience;
    const place = await this.throttle.take([{ kind: 'passkeys', of: addressOf(request) }], deadline);
    return this.#counted(response, { way, method: 'passkey' }, async () => {
      if ('retryAfterSeconds' in place)
        return { fault: { reason: 'throttled', retryAfterSeconds: place.retryAfterSeconds } };
      const signedIn = await this.ceremonies
        .signIn(form.credential, request, page)
        .catch((error: unknown) => {
          place.withdraw();
          throw error;
        });
      await place.settle(signedIn ? 'signed-in' : 'failed');
      return signedIn ?? { fault: { reason: 'unproven' } };
    });
  }

  async #counted(
    response: Response,
    labels: Pick<Labels, 'way' | 'method'>,
    attempt: () => Promise<SignedIn | SignInRejection>,
  ): Promise<SignedIn | SignInRejection> {
    const count = (result: Labels['result']) => this.meter.count('sign_ins_total', { ...labels, result });
    const result = await attempt().catch((error: unknown) => {
      count('failed');
      throw error;
    });
    if ('fault' in result) count(result.fault.reason === 'unproven' ? 'invalid' : result.fault.reason);
    else {
      count('signed-in');
      this.devices.issue(response.req, response, result.userId);
    }
    return result;
  }
}

/** Changes what oidc-provider stores about a browser: the session, and the step of an app's request. */
@Injectable()
export class BrowserSessions {
  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly database: OauthDatabase,
    private readonly revocations: RevocationChannel,
    private readonly states: OneTimeStates,
    private readonly keys: TokenKeys,
    private readonly pages: Pages,
  ) {}

  /** @returns undefined if nobody is signed in, or the member is disabled */
  async current(response: Response): Promise<{ session: Session; user: SignedInUser } | undefined> {
    const { session } = await this.#of(response);
    if (session.accountId === undefined) return undefined;
    const user = this.user(session.accountId);
    return user && { session, user };
  }

  /** Returns the member of the session or interaction just read; undefined if the account is another, or the member is disabled. */
  user(accountId: string): SignedInUser | undefined {
    const { member } = this.database.current!.signIn;
    if (!member?.active || String(member.userId) !== accountId) return undefined;
    const { userId: id, username, display_name } = member;
    return { id, username, display_name };
  }

  /** Starts a session with a new id outside an app's request, and destroys the previous one. */
  async signIn(response: Response, signedIn: SignedIn): Promise<void> {
    const { userId, at, validSince, upstream } = signedIn;
    const { provider } = this.server;
    const { context, session: before } = await this.#of(response);
    if (before.exp !== undefined) await before.destroy();
    const session = new provider.Session();
    const { signIn } = this.database.current!;
    signIn.validSince.set(userId, validSince);
    signIn.upstream = upstream;
    signIn.cameUpstream = upstream !== undefined;
    session.loginAccount({ ...loginOf(signedIn), loginTs: at });
    await session.save(LIFETIMES.session);
    context.cookies.set(provider.cookieName('session'), session.jti, {
      ...sessionCookie(this.config),
      maxAge: LIFETIMES.session * 1000,
    });
  }

  /** Ends the browser's session; apps keep their access. @param event to record in the audit log */
  async signOut(response: Response, event: NewAuthEvent): Promise<void> {
    const { context, session } = await this.#of(response);
    if (session.exp !== undefined) await endSession(this.database, session.jti, event);
    const name = this.server.provider.cookieName('session');
    context.cookies.set(name, null, sessionCookie(this.config));
  }

  /** Removes the member from the session before another member continues; otherwise, the library would send a self-submitting page. */
  async #forgetMember(response: Response): Promise<void> {
    const { session } = await this.#of(response);
    if (session.accountId === undefined) return;
    for (const name of ['accountId', 'loginTs', 'amr', 'acr', 'authorizations'] as const)
      delete session[name];
    await session.persist();
  }

  async #of(response: Response) {
    const { provider } = this.server;
    const context = provider.createContext(response.req, response);
    return { context, session: await provider.Session.get(context) };
  }

  async finishSignIn(response: Response, interaction: Interaction, signedIn: SignedIn): Promise<void> {
    const { userId, at, validSince, upstream } = signedIn;
    const before = interaction.session?.accountId;
    this.database.current!.signIn.validSince.set(userId, validSince);
    const login = { ...loginOf(signedIn), ts: at, ...(upstream ? { upstream } : {}) };
    await this.#store(response, interaction, { login }, {});
    if (before !== undefined && before !== login.accountId) await this.#forgetMember(response);
    redirect(response, interaction.returnTo);
  }

  async finishConsent(response: Response, interaction: Interaction, decision: Decision, consent: Answer) {
    await this.#store(response, interaction, { ...interaction.lastSubmission, consent }, decision);
    // Existing tokens may have fewer scopes now; the database notifies other processes.
    this.revocations.announce({ kind: 'user', id: interaction.session!.accountId });
    redirect(response, interaction.returnTo);
  }

  /** Ends the step: the app gets the error `access_denied`. @param event to record in the audit log */
  async decline(response: Response, interaction: Interaction, description: string, event?: NewAuthEvent) {
    const result = { error: 'access_denied', error_description: description };
    await this.#store(response, interaction, result, { event });
    redirect(response, interaction.returnTo);
  }

  /** Explains why a step has ended, or sends the browser back into the app's request. @returns the error to throw */
  async explain(response: Response, error: unknown, uid: string): Promise<unknown> {
    if (!isStepGone(error)) return error;
    const { params, open } = (await this.states.completed(uid)) ?? {};
    const client = params && (await this.server.provider.Client.find(params.client_id as string));
    if (!client) return error;
    if (open) {
      const { session } = await this.#of(response);
      const isHere = this.keys.keysOf('Session.uid', session.uid).some((key) => key.equals(open.sessionKey));
      if (isHere) redirect(response, `/interaction/${open.uid}`);
      else this.pages.leaveFor(response, requestAgain(params));
      return new AnsweredOtherwise();
    }
    const target = URL.parse(params.redirect_uri as string);
    const isWeb = target !== null && /^https?:$/.test(target.protocol);
    const href = client.clientUri ?? (isWeb ? target.origin : undefined); // an app on the device has no website
    const text = client.by_member === true ? 'toApp' : 'backToApp'; // a member's app may redirect anywhere
    const next = href === undefined ? {} : { next: { text, href, host: hostOf(href) } as const };
    return new PageFault(410, 'finished', undefined, next, 'sign_in_expired');
  }

  async #store(
    response: Response,
    interaction: Interaction,
    result: InteractionResults,
    decision: Decision,
  ): Promise<void> {
    interaction.result = result;
    await answer(this.database, interaction, decision).catch(async (error: unknown) => {
      throw await this.explain(response, error, interaction.uid);
    });
  }
}

/** Makes the URL that begins an app's request again. @param more parameters to add, or to use instead of the app's */
export function requestAgain(
  params: Readonly<Record<string, unknown>>,
  more: Record<string, string> = {},
): string {
  const asked = Object.entries(params).filter(([, value]) => typeof value === 'string');
  return `${ROUTES.authorization}?${new URLSearchParams({ ...(Object.fromEntries(asked) as Record<string, string>), ...more })}`;
}

function loginOf({ userId, amr, acr }: SignedIn) {
  return {
    accountId: String(userId),
    ...(amr ? { amr: [...amr] } : {}),
    ...(acr === undefined ? {} : { acr }),
  };
}
