/** Forms of secrets that this server issues, to create them and to recognize them in texts. */

export const CLIENT_SECRET_PREFIX = 'pua_secret_';
export const WEBHOOK_SECRET_PREFIX = 'whsec_';

/** Form of codes, tokens, and the secrets of calendar links and cookies: 256 random bits in base64url. */
const OPAQUE = /^[\w-]{43}$/;
const NAMED = /pua_(?:live|test|secret)_|whsec_/i;

/** Tells whether the text has the form of a code, a token, or the secret of a link or cookie. */
export const isOpaqueSecret = (text: string): boolean => OPAQUE.test(text);

/** Tells whether a text that a caller chose could be a secret, or contains the prefix of one. */
export const looksSecret = (text: string): boolean => isOpaqueSecret(text) || NAMED.test(text);

/** Finds the first possible opaque secret anywhere in a text. */
export const findOpaqueSecret = (text: string): string | undefined =>
  /(?<![\w-])[\w-]{43}(?![\w-])/.exec(text)?.[0];

/**
 * Finds secrets anywhere in a text, but opaque secrets only after `Bearer`, `DPoP` or `/calendar/`. The lookahead comes first, because
 * the lookbehind would take seconds in a text with thousands of spaces.
 */
const ANYWHERE = new RegExp(
  [
    'pua_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{10,}',
    `${CLIENT_SECRET_PREFIX}[0-9A-Za-z]{10,}`,
    `${WEBHOOK_SECRET_PREFIX}[A-Za-z0-9+/=]{10,}`,
    '(?=[A-Za-z0-9._~+/=-]{10})(?<=\\b(?:Bearer|DPoP)\\s+)[A-Za-z0-9._~+/=-]+',
    '(?<=/calendar/)[\\w%-]{10,}',
  ].join('|'),
  'gi',
);

/** Replaces the secrets that {@link ANYWHERE} finds in a text with `[redacted]`. */
export const withoutSecrets = (text: string): string => text.replace(ANYWHERE, '[redacted]');
