import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { JWTPayload } from 'jose';
import { errors, type Interaction } from 'oidc-provider';
import { BrowserCookie, DeviceCookies } from '../accounts/browser-cookies.js';
import { signInOriginOf } from '../accounts/sign-in/sign-in-origin.js';
import type { SignedIn } from '../accounts/sign-in/sign-in.js';
import { UpstreamMembers, type UpstreamMember } from '../accounts/sign-in/upstream-members.js';
import { Config } from '../config/config.js';
import { randomBytes } from '../crypto/random.js';
import { isOpaqueSecret } from '../values/secret-forms.js';
import { TokenKeys } from '../crypto/hmac.js';
import { Meter } from '../runtime/meter.js';
import { queryOf } from '../http/input/query.js';
import { PageFault } from '../authorization-server/failures/page-fault.js';
import { LIFETIMES } from '../authorization-server/lifetimes.js';
import { OneTimeStates } from '../authorization-server/adapters/state.adapter.js';
import type { UpstreamSession } from '../authorization-server/requests/oauth-database.js';
import { OpenidProvider, UpstreamFault, type UpstreamSecrets } from './openid-provider.js';

export const ACCOUNT_PAGES = [
  'apps',
  'sessions',
  'security',
  'activity',
  'keys',
  'calendar',
  'data',
] as const;

/** Pages that require DEVELOPER_CONSOLE. */
export const DEVELOPER_PAGES = ['developer', 'developer/new-key'] as const;

export type SignInPage = (typeof ACCOUNT_PAGES)[number] | (typeof DEVELOPER_PAGES)[number];

/** Returns the path of an account or developer page. */
export function pathOf(page: SignInPage): string {
  return page.startsWith('developer') ? `/${page}` : `/account/${page}`;
}

type Purpose = { readonly interaction: string } | { readonly account: SignInPage };

interface Begun extends UpstreamSecrets {
  readonly purpose: Purpose;
  /** Start time by this process's clock, in seconds since 1970. */
  readonly begunAt: number;
  /** Maximum age of the authentication at the start, in seconds; null: `maxSession`, but the provider may omit the time. */
  readonly maxAge: number | null;
}

interface Wishes {
  /** Whether the provider must prompt the member, even if they have a session there. */
  readonly prompted: boolean;
  /** Maximum age of the authentication in seconds; 0: the member must authenticate again. */
  readonly maxAge?: number | undefined;
  /** Parameters to forward unchanged. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** Tolerated clock difference, in seconds. */
const CLOCKS_APART = 90;

/** The error code if the member declined (RFC 6749 §4.1.2.1). */
const DECLINED = 'access_denied';

/** Status, fault, code, reason and next step for each kind of failure. */
const FAULTS = {
  away: [503, 'upstreamAway', 'temporarily_unavailable', 'upstream_away', 'tryAgain'],
  refused: [502, 'upstreamFailed', undefined, 'upstream_refused', 'tryAgain'],
  wrong: [502, 'upstreamFailed', undefined, 'upstream_wrong', 'tryAgain'],
  declined: [403, 'upstreamDeclined', DECLINED, 'upstream_refused', 'tryAgain'],
  unknown: [403, 'unknownMember', 'access_denied', 'unknown_member', 'anotherAccount'],
} as const;

/** Signs members in with the external identity provider. The stored state works only once, and only with the browser's cookie. */
@Injectable()
export class UpstreamSignIns {
  readonly #cookie: BrowserCookie;

  constructor(
    private readonly config: Config,
    private readonly provider: OpenidProvider,
    private readonly states: OneTimeStates,
    private readonly members: UpstreamMembers,
    private readonly devices: DeviceCookies,
    private readonly meter: Meter,
    private readonly keys: TokenKeys,
  ) {
    this.#cookie = new BrowserCookie(config, 'pua_upstream', '__Host-', LIFETIMES.interaction);
  }

  /** Starts a sign-in. @returns the URL to redirect to @throws PageFault if the provider is unavailable or not configured */
  async begin(response: Response, purpose: Purpose, wishes: Wishes): Promise<string> {
    if (!this.config.upstream) throw new PageFault(400, 'malformed');
    const state = secret();
    const begun: Begun = {
      purpose,
      nonce: secret(),
      verifier: secret(),
      begunAt: Math.floor(Date.now() / 1000),
      maxAge: wishes.maxAge ?? null,
    };
    const url = await this.provider
      .authorizationUrl(state, begun, {
        ...wishes.parameters,
        ...(wishes.prompted ? { prompt: 'login' } : {}),
        // With max_age, providers must send the time of authentication (OpenID Connect Core §3.1.2.1).
        max_age: String(wishes.maxAge ?? LIFETIMES.maxSession),
      })
      .catch((error: unknown) => {
        throw this.#faultOf(error, purpose);
      });
    const browser = this.#browserOf(response.req) ?? secret();
    this.#cookie.set(response, browser);
    await this.states.put('UpstreamSignIn', `${state}-${browser}`, begun, LIFETIMES.interaction);
    return url.href;
  }

  /** Reads and removes a sign-in's stored state, by `state` and browser. @throws SessionNotFound if missing, expired or used */
  async take(request: Request): Promise<Begun> {
    const [state, ...others] = queryOf(request).getAll('state');
    const browser = this.#browserOf(request);
    const begun =
      state !== undefined && others.length === 0 && isOpaqueSecret(state) && browser !== undefined
        ? await this.states.take<Begun>('UpstreamSignIn', `${state}-${browser}`)
        : undefined;
    if (!begun) throw new errors.SessionNotFound('another sign-in at the external identity provider');
    return begun;
  }

  /** Completes a sign-in, and remembers the browser. @returns the member; undefined if they declined @throws PageFault */
  async finish(response: Response, begun: Begun): Promise<SignedIn | undefined> {
    const request = response.req;
    const { purpose } = begun;
    const way = 'interaction' in purpose ? 'authorization' : 'account';
    const count = (result: 'signed-in' | 'invalid' | 'failed') =>
      this.meter.count('sign_ins_total', { result, way, method: 'upstream' });
    try {
      const answer = await this.provider.redeem(queryOf(request), begun);
      const { claim, match } = this.config.upstream!;
      if (answer.member[claim] === undefined)
        throw new UpstreamFault('wrong', `the provider did not send the claim ${claim}`);
      const authTime = readAuthTime(answer.idToken, begun);
      const member = await this.members.signIn(answer.member, signInOriginOf(request));
      count(member ? 'signed-in' : 'invalid');
      if (!member)
        throw this.fault('unknown', purpose, {
          message: `the claim ${claim} names no member who can sign in (${match})`,
        });
      this.devices.issue(request, response, member.id);
      return this.#signedIn(member, answer.idToken, authTime);
    } catch (error) {
      if (error instanceof PageFault) throw error;
      if (error instanceof UpstreamFault && error.code === DECLINED) return undefined;
      count('failed');
      throw this.#faultOf(error, purpose);
    }
  }

  /** Returns the keys that find browser sessions by the provider's `sub` or `sid`. New sessions store the first key. */
  keysOf(what: 'sub' | 'sid', value: string): Buffer[] {
    return this.keys.everyKeyOf(`Upstream.${what}`, value);
  }

  #signedIn(
    { id: userId, valid_since: validSince, now }: UpstreamMember,
    { sub, sid, amr, acr }: JWTPayload,
    authTime: number,
  ): SignedIn {
    const session = typeof sid === 'string' ? this.keysOf('sid', sid)[0]! : undefined;
    const upstream: UpstreamSession = {
      subject: this.keysOf('sub', sub!)[0]!.toString('base64url'),
      session: session?.toString('base64url') ?? null,
      at: now,
    };
    return {
      userId,
      validSince,
      at: Math.floor(Math.min(authTime, now)),
      amr: Array.isArray(amr) ? amr.filter(isShort).slice(0, 10) : undefined,
      acr: isShort(acr) ? acr : undefined,
      upstream,
    };
  }

  /** Makes the page for a failure of the provider. @returns any other error unchanged */
  #faultOf(error: unknown, purpose: Purpose): unknown {
    return error instanceof UpstreamFault ? this.fault(error.kind, purpose, error) : error;
  }

  /** Makes the page that explains a fault. @param kind `declined`: the member declined, and there is no other sign-in method */
  fault(
    kind: keyof typeof FAULTS,
    purpose: Purpose,
    said: { message?: string; code?: string | undefined } = {},
  ): PageFault {
    const [status, fault, code, reason, text] = FAULTS[kind];
    const page = 'interaction' in purpose ? `/interaction/${purpose.interaction}` : pathOf(purpose.account);
    const href = text === 'tryAgain' ? page : `${page}/upstream?other=1`; // restarts the sign-in
    const more = { login: this.config.upstream!.label, next: { text, href } };
    return new PageFault(status, fault, code ?? said.code, more, reason, said.message);
  }

  #browserOf(request: Request): string | undefined {
    return this.#cookie.valuesIn(request).find(isOpaqueSecret);
  }
}

/** Chooses the parameters to forward, and whether to prompt the member. @param other whether the member wants another account */
export function wishesOf({ params, prompt, session }: Interaction, other: boolean): Wishes {
  const passedOn = ['login_hint', 'ui_locales', 'acr_values'].flatMap((name) =>
    typeof params[name] === 'string' ? [[name, params[name]] as const] : [],
  );
  const maxAge = Number(params.max_age ?? Number.NaN);
  const asked = typeof params.prompt === 'string' && params.prompt.split(' ').includes('login');
  const isOld = prompt.reasons.includes('max_age') && session?.accountId !== undefined;
  const anew = asked || isOld;
  const allowed = Number.isSafeInteger(maxAge) && maxAge >= 0 ? maxAge : undefined;
  return { prompted: other || anew, maxAge: anew ? 0 : allowed, parameters: Object.fromEntries(passedOn) };
}

/** @returns time of the authentication by the provider's clock; 0 if unknown @throws UpstreamFault if too old, or missing but required */
function readAuthTime({ auth_time: authTime }: JWTPayload, { maxAge, begunAt }: Begun): number {
  if (typeof authTime !== 'number') {
    if (maxAge !== null)
      throw new UpstreamFault(
        'wrong',
        'the claim auth_time is missing: when the member signed in must be known',
      );
    return 0;
  }
  if (authTime < begunAt - (maxAge ?? LIFETIMES.maxSession) - CLOCKS_APART)
    throw new UpstreamFault('wrong', 'the member signed in at the provider longer ago than is allowed');
  return authTime;
}

function isShort(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value);
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}
