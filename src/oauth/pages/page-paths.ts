/** Where members see how they sign in, and change it. */
export const SECURITY_PATH = '/account/security';

/** Where they prove again who they are. */
export const CONFIRM_PATH = `${SECURITY_PATH}/confirm`;

/** Where who forgot the password asks for a mail. */
export const RESET_PATH = '/account/password-reset';

/** The beginning of where that leads: its secret is what follows, which no log of ours has. */
export const NEW_PASSWORD_PATH = '/account/new-password';
