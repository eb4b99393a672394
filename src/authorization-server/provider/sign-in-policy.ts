import { errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { passkeyDomain } from '../../accounts/sign-in/sign-in-methods.js';
import type { Config } from '../../config/config.js';

/**
 * Classes of authentication that an app can ask for (`acr_values`; OpenID Connect EAP ACR Values 1.0 §2): `phr` with a passkey, `phrh` with
 * one that never leaves its hardware.
 */
const PASSKEY_CLASSES: readonly string[] = ['phr', 'phrh'];

/** Gives those that there are. */
export function passkeyClasses(config: Config): readonly string[] {
  return passkeyDomain(config) === undefined ? [] : PASSKEY_CLASSES;
}

/** Finds the classes that a member can reach: with the passkeys that they have. */
export type ReachableClasses = (userId: number) => Promise<readonly string[]>;

/** Why the member is asked to sign in: the reason of an interaction. */
export const PASSKEY_WANTED = 'passkey_wanted';

/** Whether authentication of a class, if any, is of one of those that are asked for. */
const isReached = (asked: readonly string[], reached: string | undefined) =>
  reached !== undefined && (asked.includes(reached) || (reached === 'phrh' && asked.includes('phr')));

/**
 * Keeps of `claims` the one thing that this server knows (OpenID Connect Core §5.5.1.1): classes of authentication without which the app
 * does not want the member to be signed in. They take the place of `acr_values`, which the member need not meet.
 *
 * @throws InvalidRequest where it is malformed
 */
export function keepEssentialClasses({ oidc }: KoaContextWithOIDC, claims: string | undefined): void {
  const values = essentialClasses(claims);
  const kept = values && { id_token: { acr: { essential: true, values } } };
  Object.assign(
    oidc.params!,
    { claims: kept && JSON.stringify(kept) },
    kept && { acr_values: values.join(' ') },
  );
}

function essentialClasses(claims: unknown): readonly string[] | undefined {
  if (typeof claims !== 'string') return undefined;
  const { acr } = membersOf(membersOf(parsed(claims)).id_token);
  const { essential, value, values = value } = membersOf(acr);
  if (essential !== true || values === undefined) return undefined;
  const classes = [values].flat();
  if (!classes.every((one) => typeof one === 'string'))
    throw new errors.InvalidRequest('the acr in claims must have strings as values');
  return classes as string[];
}

/** A claim that is only named has the value null (Core §5.5). */
function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value))
    throw new errors.InvalidRequest('claims must be a JSON object of objects');
  return value as Record<string, unknown>;
}

function parsed(claims: string): unknown {
  try {
    return JSON.parse(claims);
  } catch (cause) {
    throw new errors.InvalidRequest('claims must be a JSON object', undefined, { cause });
  }
}

/**
 * When a member has to sign in, besides when nobody is signed in.
 *
 * @param reachableBy for members who have a session
 */
export function signInPolicy(config: Config, reachableBy: ReachableClasses): interactionPolicy.DefaultPolicy {
  const { Check } = interactionPolicy;
  const prompts = interactionPolicy.base();
  const classes = passkeyClasses(config);

  /** The member cannot be asked for a passkey that they do not have: of any they get one by signing in again. */
  async function canStepUp({ oidc: { params, session, result } }: KoaContextWithOIDC): Promise<boolean> {
    const asked = classesIn(params?.acr_values).filter((one) => classes.includes(one));
    if (asked.length === 0 || isReached(asked, session?.acr)) return false;
    const { login } = result ?? {};
    // A passkey of another class, or the platform's own login, is all there is.
    if (login && (login.upstream !== undefined || login.amr?.includes('pwd') !== true)) return false;
    if (session?.accountId === undefined) return true;
    const hasUsedOne = session.acr !== undefined && classes.includes(session.acr);
    const reachable = await reachableBy(Number(session.accountId));
    return reachable.some((one) => !hasUsedOne || isReached(asked, one));
  }

  prompts.get('login')!.checks.add(
    // Default: acr_values only end up in the ID token.
    new Check(PASSKEY_WANTED, 'the app asks for a passkey', 'login_required', canStepUp),
  );
  prompts.get('login')!.checks.add(
    // Default, with the whole of `claims` alone: asks again and again.
    new Check('class_wanted', 'the app requires a class of sign-in', 'login_required', async (ctx) => {
      const { params, session, result } = ctx.oidc;
      const essential = essentialClasses(params?.claims);
      if (!essential || isReached(essential, session?.acr) || (await canStepUp(ctx))) return false;
      if (config.upstream && !result?.login) return true; // the platform's own login has classes of its own
      throw new errors.UnmetAuthenticationRequirements('the member cannot sign in as the app requires');
    }),
  );
  prompts.get('login')!.checks.add(
    // Without it the library fails at the session of a member who is gone or disabled.
    new Check('account_gone', 'the signed-in member cannot sign in any more', ({ oidc }) => {
      return oidc.session?.accountId !== undefined && oidc.account === undefined;
    }),
  );
  return prompts;
}

const classesIn = (acrValues: unknown) => (typeof acrValues === 'string' ? acrValues.split(' ') : []);
