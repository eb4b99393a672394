import type { Config } from '../../config/config.js';

/** The page where members see and change how they sign in. */
export const SECURITY_PATH = '/account/security';

/** The page where they prove again who they are. */
export const CONFIRM_PATH = `${SECURITY_PATH}/confirm`;

/** The page where a member who forgot the password asks for a mail. */
export const RESET_PATH = '/account/password-reset';

/** The beginning of the address in that mail. The secret follows it, and is in none of our logs. */
export const NEW_PASSWORD_PATH = '/account/new-password';

/** Whether members who forgot their password are sent a mail by this server: else those two pages do not exist. */
export function resetsPasswords({
  mail,
  localSignIn,
  passwordResetUrl,
}: Pick<Config, 'mail' | 'localSignIn' | 'passwordResetUrl'>): boolean {
  return localSignIn && mail !== undefined && passwordResetUrl === undefined;
}
