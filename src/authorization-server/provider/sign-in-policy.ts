import { errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { passkeyDomain } from '../../accounts/sign-in/sign-in-methods.js';
import type { Config } from '../../config/config.js';
import type { OauthDatabase } from '../requests/oauth-database.js';

/** Values of `acr_values` (OpenID Connect EAP ACR Values 1.0 §2): `phr` with a passkey, `phrh` with a passkey bound to its hardware. */
const PASSKEY_CLASSES: readonly string[] = ['phr', 'phrh'];

/** Returns the values of `acr_values` that this server supports. */
export function passkeyClasses(config: Config): readonly string[] {
  return passkeyDomain(config) === undefined ? [] : PASSKEY_CLASSES;
}

/** A passkey that cannot be backed up is bound to its hardware. */
const FIND_CLASSES = {
  name: 'find-classes',
  text: `SELECT DISTINCT CASE WHEN backup_eligible THEN 'phr' ELSE 'phrh' END AS acr FROM passkeys WHERE user_id = $1`,
};

export const PASSKEY_WANTED = 'passkey_wanted';

const isReached = (asked: readonly string[], reached: string | undefined) =>
  reached !== undefined && (asked.includes(reached) || (reached === 'phrh' && asked.includes('phr')));

/** Keeps only the essential `acr` values of `claims` (OpenID Connect Core §5.5.1.1), and replaces `acr_values` by them. */
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

/** A claim without options has the value null (Core §5.5.1). */
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

/** Adds checks to the library's prompts, which decide when a member must sign in. */
export function signInPolicy(config: Config, database: OauthDatabase): interactionPolicy.DefaultPolicy {
  const { Check } = interactionPolicy;
  const prompts = interactionPolicy.base();
  const classes = passkeyClasses(config);

  /** Tells whether another sign-in could reach the requested class; false if the signed-in member has no passkey. */
  async function canStepUp({ oidc: { params, session, result } }: KoaContextWithOIDC): Promise<boolean> {
    const asked = classesIn(params?.acr_values).filter((one) => classes.includes(one));
    if (asked.length === 0 || isReached(asked, session?.acr)) return false;
    const { login } = result ?? {};
    // If the member has just signed in by passkey or external identity provider, another prompt could repeat without end.
    if (login && (login.upstream !== undefined || login.amr?.includes('pwd') !== true)) return false;
    if (session?.accountId === undefined) return true;
    const hasUsedOne = session.acr !== undefined && classes.includes(session.acr);
    const passkeys = await database.read<{ acr: string }>(FIND_CLASSES, [Number(session.accountId)]);
    return passkeys.some(({ acr }) => !hasUsedOne || isReached(asked, acr));
  }

  prompts.get('login')!.checks.add(
    // Default: acr_values only affect a claim of the ID token.
    new Check(PASSKEY_WANTED, 'the app asks for a passkey', 'login_required', canStepUp),
  );
  prompts.get('login')!.checks.add(
    // The library's option claimsParameter would handle all `claims`, and its checks of `acr` would prompt repeatedly.
    new Check('class_wanted', 'the app requires a class of sign-in', 'login_required', async (ctx) => {
      const { params, session, result } = ctx.oidc;
      const essential = essentialClasses(params?.claims);
      if (!essential || isReached(essential, session?.acr) || (await canStepUp(ctx))) return false;
      if (config.upstream && !result?.login) return true; // the external identity provider has its own classes
      throw new errors.UnmetAuthenticationRequirements('the member cannot sign in as the app requires');
    }),
  );
  prompts.get('login')!.checks.add(
    // Without this check, the library fails for the session of an erased or disabled member.
    new Check('account_gone', 'the signed-in member cannot sign in any more', ({ oidc }) => {
      return oidc.session?.accountId !== undefined && oidc.account === undefined;
    }),
  );
  return prompts;
}

const classesIn = (acrValues: unknown) => (typeof acrValues === 'string' ? acrValues.split(' ') : []);
