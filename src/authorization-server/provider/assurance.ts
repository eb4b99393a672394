/**
 * Classes of authentication that an app can ask for (`acr_values`; OpenID Connect EAP ACR Values 1.0 §2): `phr` with a passkey, `phrh` with
 * one that never leaves its hardware.
 */
export const PASSKEY_CLASSES: readonly string[] = ['phr', 'phrh'];

/** Why the member is asked to sign in: the reason of an interaction. */
export const PASSKEY_WANTED = 'passkey_wanted';

/**
 * Tells whether an app asks for a passkey and the session was not signed in with one of that class.
 *
 * @param asked `acr_values` of the request
 * @param reached `acr` of the session
 */
export function wantsPasskey(asked: unknown, reached: string | undefined): boolean {
  const classes = typeof asked === 'string' ? asked.split(' ') : [];
  if (!classes.some((one) => PASSKEY_CLASSES.includes(one))) return false;
  const enough = reached === 'phrh' ? ['phrh', 'phr'] : [reached];
  return !classes.some((one) => enough.includes(one));
}
