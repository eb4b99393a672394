const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** Lifetimes in seconds; a test checks the rules between them. */
export const LIFETIMES = {
  authorizationCode: MINUTE,
  accessToken: 10 * MINUTE,
  idToken: 10 * MINUTE,
  interaction: 30 * MINUTE,
  passkeyChallenge: 2 * MINUTE,
  passwordReset: 30 * MINUTE,
  /** Maximum validity of a client's assertion, whose id is stored until it expires. */
  clientAssertion: 5 * MINUTE,
  /** Lifetime of a browser session with a member, from its last use. */
  session: DAY,
  /** Maximum lifetime of a browser session from the sign-in. */
  maxSession: 30 * DAY,
  /** Lifetime of a browser session without a member. */
  anonymousSession: 10 * MINUTE,
  /** Storage time of the mark that a session ended at the external identity provider: longer than any sign-in takes. */
  upstreamEnd: 60 * MINUTE,
  /** For the library only: the database decides when a grant expires. */
  grant: 181 * DAY,
  /** Access under a consent that the member gave before members could choose the duration. */
  earlierGrant: 14 * DAY,
  /** Maximum storage time of a used refresh token, to detect reuse. */
  usedRefreshToken: 30 * DAY,
} as const;
