import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { errors } from 'oidc-provider';
import type { Interaction } from 'oidc-provider';
import { cookiesNamed } from '../../accounts/cookies.js';
import { DeviceCookies } from '../../accounts/device-cookies.js';
import type { SignedIn } from '../../accounts/sign-in.js';
import { UpstreamMembers } from '../../accounts/upstream-members.js';
import type { UpstreamClaims, UpstreamMember } from '../../accounts/upstream-members.js';
import { Config } from '../../config/config.js';
import { randomBytes } from '../../crypto/random.js';
import { TokenKeys } from '../../crypto/token-keys.js';
import { Meter } from '../../http/meter.js';
import { addressOf } from '../../values/network.js';
import { PageFault } from '../pages/page-faults.js';
import type { FaultName } from '../pages/texts/en.js';
import type { RefusalReason } from '../provider/refusal-reasons.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import { OneTimeStates } from '../storage/one-time-states.js';
import type { UpstreamSession } from '../storage/upstream-session.js';
import { OpenidProvider, UpstreamFault } from './openid-provider.js';

/** Pages of a member's account. */
export const ACCOUNT_PAGES = [
  'apps',
  'sessions',
  'security',
  'activity',
  'keys',
  'calendar',
  'data',
] as const;

/** Pages for developers; they exist only with DEVELOPER_CONSOLE. */
export const DEVELOPER_PAGES = ['developer', 'developer/new-key'] as const;

/** Pages on which a member can sign in. */
export type SignInPage = (typeof ACCOUNT_PAGES)[number] | (typeof DEVELOPER_PAGES)[number];

/** Where such a page is. */
export function pathOf(page: SignInPage): string {
  return page.startsWith('developer') ? `/${page}` : `/account/${page}`;
}

/** What a sign-in with the platform's own login is for: an app's request, or a page of the account. */
export type Purpose = { readonly interaction: string } | { readonly account: SignInPage };

/** What is kept until the answer comes. */
interface Begun {
  readonly purpose: Purpose;
  readonly nonce: string;
  readonly verifier: string;
  /** By this process's clock: seconds since 1970. */
  readonly begunAt: number;
  /** The member is to prove anew who they are, whether the provider knows them still or not. */
  readonly anew: boolean;
  /** How long ago that may have been, in seconds, where the app says so. */
  readonly maxAge: number | null;
}

/** What a request asks of the provider. */
export interface Wishes {
  /** Whether the member is to prove anew who they are. */
  readonly anew: boolean;
  readonly maxAge?: number | undefined;
  /** Parameters that are passed on as they are. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** How far clocks may be apart, in seconds. */
const CLOCKS_APART = 90;

/** Status, page, code and reason of what can go wrong at the provider. */
const FAULTS = {
  away: [503, 'upstreamAway', 'temporarily_unavailable', 'upstream_away'],
  refused: [502, 'upstreamFailed', undefined, 'upstream_refused'],
  wrong: [502, 'upstreamFailed', undefined, 'upstream_wrong'],
} as const;

const SECRET = /^[\w-]{43}$/;

/**
 * Sign-ins with the platform's own login (OpenID Connect, this server as the client). What its answer is compared with is kept under
 * the state together with a cookie of this browser: an answer that another browser brings, or the same one twice, finds nothing.
 */
@Injectable()
export class UpstreamSignIns {
  readonly #cookie: string;
  readonly #attributes: string;
  readonly #keys: TokenKeys;

  constructor(
    private readonly config: Config,
    private readonly provider: OpenidProvider,
    private readonly states: OneTimeStates,
    private readonly members: UpstreamMembers,
    private readonly devices: DeviceCookies,
    private readonly meter: Meter,
  ) {
    const secure = config.publicUrl.startsWith('https:');
    // __Host-: no neighbouring host can set it. Browsers refuse the name on http.
    this.#cookie = secure ? '__Host-pua_upstream' : 'pua_upstream';
    this.#attributes = `Path=/; Max-Age=${LIFETIMES.interaction}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
    this.#keys = new TokenKeys(config.secrets);
  }

  /** What a sign-in page shows of it, where there is one. */
  linkFrom(page: string): { upstream?: { href: string; label: string } } {
    const { upstream } = this.config;
    return upstream ? { upstream: { href: `${page}/upstream`, label: upstream.label } } : {};
  }

  /**
   * Begins a sign-in.
   *
   * @returns where the browser is to go
   * @throws PageFault where the provider is away, or there is none
   */
  async begin(request: Request, response: Response, purpose: Purpose, wishes: Wishes): Promise<string> {
    if (!this.config.upstream) throw new PageFault(400, 'malformed');
    const state = secret();
    const begun: Begun = {
      purpose,
      nonce: secret(),
      verifier: secret(),
      begunAt: Math.floor(Date.now() / 1000),
      anew: wishes.anew,
      maxAge: wishes.maxAge ?? null,
    };
    const url = await this.provider
      .authorizationUrl({
        state,
        nonce: begun.nonce,
        verifier: begun.verifier,
        parameters: {
          ...wishes.parameters,
          ...(wishes.anew ? { prompt: 'login' } : {}),
          ...(wishes.maxAge === undefined ? {} : { max_age: String(wishes.maxAge) }),
        },
      })
      .catch((error: unknown) => {
        throw this.#faultOf(error, purpose);
      });
    const browser = this.#browserOf(request) ?? secret();
    response.append('Set-Cookie', `${this.#cookie}=${browser}; ${this.#attributes}`);
    await this.states.put('UpstreamSignIn', idOf(state, browser), begun, LIFETIMES.interaction);
    return url.href;
  }

  /**
   * Takes what was begun, by the state of an answer and the browser that brings it: nobody gets it a second time.
   *
   * @throws SessionNotFound where this browser began no such sign-in, it has expired, or it was answered before
   */
  async take(request: Request): Promise<Begun> {
    const [state, ...others] = queryOf(request).getAll('state');
    const browser = this.#browserOf(request);
    const begun =
      state !== undefined && others.length === 0 && SECRET.test(state) && browser !== undefined
        ? await this.states.take<Begun>('UpstreamSignIn', idOf(state, browser))
        : undefined;
    if (!begun) throw new errors.SessionNotFound('another sign-in with the platform’s own login');
    return begun;
  }

  /**
   * Redeems an answer.
   *
   * @returns the member, whose browser is remembered
   * @throws PageFault for whatever was wrong
   */
  async finish(request: Request, response: Response, begun: Begun): Promise<SignedIn> {
    const { purpose } = begun;
    const way = 'interaction' in purpose ? 'authorization' : 'account';
    const count = (result: 'signed-in' | 'invalid' | 'failed') =>
      this.meter.count('sign_ins_total', { result, way, method: 'upstream' });
    const query = queryOf(request);
    try {
      const claims = await this.provider.redeem(query, {
        state: query.get('state')!,
        nonce: begun.nonce,
        verifier: begun.verifier,
      });
      const { claim } = this.config.upstream!;
      if (claims[claim] === undefined)
        throw new UpstreamFault('wrong', `the provider says nothing of the claim ${claim}`);
      checkTime(claims, begun);
      const member = await this.members.signIn(claims, addressOf(request));
      count(member ? 'signed-in' : 'invalid');
      if (!member)
        throw this.#fault(
          403,
          'unknownMember',
          'access_denied',
          'unknown_member',
          againAs('anotherAccount', purpose),
        );
      this.devices.issue(request, response, member.userId);
      return this.#signedIn(member, claims);
    } catch (error) {
      if (error instanceof PageFault) throw error;
      count('failed');
      throw this.#faultOf(error, purpose);
    }
  }

  /** As browser sessions are found that came of this subject and session at the provider: the first is the one that is stored. */
  keysOf(what: 'sub' | 'sid', value: string): Buffer[] {
    return this.#keys.everyKeyOf(`Upstream.${what}`, value);
  }

  #signedIn(member: UpstreamMember, claims: UpstreamClaims): SignedIn {
    const { userId, validSince, now } = member;
    const { auth_time: authTime, amr, acr } = claims;
    const session = typeof claims.sid === 'string' ? this.keysOf('sid', claims.sid)[0]! : undefined;
    const upstream: UpstreamSession = {
      subject: this.keysOf('sub', claims.sub as string)[0]!.toString('base64url'),
      session: session?.toString('base64url') ?? null,
      at: now,
    };
    return {
      userId,
      validSince,
      at: typeof authTime === 'number' ? Math.min(Math.floor(authTime), now) : now,
      amr: Array.isArray(amr) ? amr.filter(isShort).slice(0, 10) : undefined,
      acr: isShort(acr) ? acr : undefined,
      upstream,
    };
  }

  /** @returns the page for what went wrong at the provider; anything else as it is */
  #faultOf(error: unknown, purpose: Purpose): unknown {
    if (!(error instanceof UpstreamFault)) return error;
    const [status, fault, code, reason] = FAULTS[error.kind];
    return this.#fault(
      status,
      fault,
      code ?? error.code,
      reason,
      againAs('tryAgain', purpose),
      error.message,
    );
  }

  #fault(
    status: number,
    fault: FaultName,
    code: string | undefined,
    reason: RefusalReason,
    next: Next,
    detail?: string,
  ): PageFault {
    return new PageFault(status, fault, code, { login: this.config.upstream!.label, next }, reason, detail);
  }

  #browserOf(request: Request): string | undefined {
    return cookiesNamed(request, this.#cookie).find((value) => SECRET.test(value));
  }
}

/**
 * Which parameters of an app's request are passed on, and whether the member is to prove anew who they are: where the app or they
 * themselves ask for that, and where their sign-in here is older than the app allows.
 */
export function wishesOf({ params, prompt, session }: Interaction, other: boolean): Wishes {
  const passedOn = ['login_hint', 'ui_locales', 'acr_values'].flatMap((name) =>
    typeof params[name] === 'string' ? [[name, params[name]] as const] : [],
  );
  const maxAge = Number(params.max_age ?? Number.NaN);
  const asked = typeof params.prompt === 'string' && params.prompt.split(' ').includes('login');
  const isOld = prompt.reasons.includes('max_age') && session?.accountId !== undefined;
  return {
    anew: other || asked || isOld,
    maxAge: Number.isSafeInteger(maxAge) && maxAge >= 0 ? maxAge : undefined,
    parameters: Object.fromEntries(passedOn),
  };
}

type Next = NonNullable<PageFault['more']['next']>;

/** Where somebody begins anew who could not sign in. */
function againAs(text: 'tryAgain' | 'anotherAccount', purpose: Purpose): Next {
  const page = 'interaction' in purpose ? `/interaction/${purpose.interaction}` : pathOf(purpose.account);
  return { text, href: text === 'tryAgain' ? page : `${page}/upstream?other=1` };
}

/** @throws UpstreamFault where the member proved who they are longer ago than the app allows, or did not do it anew */
function checkTime({ auth_time: authTime }: UpstreamClaims, { anew, maxAge, begunAt }: Begun): void {
  const now = Math.floor(Date.now() / 1000);
  if (typeof authTime !== 'number') {
    if (maxAge !== null)
      throw new UpstreamFault('wrong', 'the provider does not say when the member signed in');
    return;
  }
  const oldest = Math.min(
    maxAge === null ? LIFETIMES.longestSession : maxAge,
    anew ? now - begunAt : LIFETIMES.longestSession,
  );
  if (now - authTime > oldest + CLOCKS_APART)
    throw new UpstreamFault('wrong', 'the member signed in at the provider longer ago than is allowed');
}

function isShort(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,200}$/.test(value);
}

/** What stands behind the path, as it was sent: nothing else parses it. */
export function queryOf({ originalUrl, context }: Request): URLSearchParams {
  return new URLSearchParams(originalUrl.slice(context.path.length));
}

function idOf(state: string, browser: string): string {
  return `${state}-${browser}`;
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}
