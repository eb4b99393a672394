import type { Config } from '../../config/config.js';

/** The page where members see and change how they sign in. */
export const SECURITY_PATH = '/account/security';

/** The page where a member who forgot their password requests an email. */
export const RESET_PATH = '/account/password-reset';

/** The start of the link in that email. The secret follows it, and is never logged. */
export const NEW_PASSWORD_PATH = '/account/new-password';

/** Whether this server sends password reset emails; otherwise those two pages do not exist. */
export function resetsPasswords({
  mail,
  localSignIn,
  passwordResetUrl,
}: Pick<Config, 'mail' | 'localSignIn' | 'passwordResetUrl'>): boolean {
  return localSignIn && mail !== undefined && passwordResetUrl === undefined;
}
