const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** All lifetimes in seconds; a test checks the rules between them. */
export const LIFETIMES = {
  authorizationCode: MINUTE,
  accessToken: 10 * MINUTE,
  idToken: 10 * MINUTE,
  interaction: 30 * MINUTE,
  passkeyChallenge: 2 * MINUTE,
  passwordReset: 30 * MINUTE,
  /** Maximum validity of a client's assertion: its id is kept until it expires. */
  clientAssertion: 5 * MINUTE,
  /** From the last use. */
  session: DAY,
  /** From the sign-in. */
  maxSession: 30 * DAY,
  /** A browser session without a member, which only carries a sign-out form. */
  anonymousSession: 10 * MINUTE,
  /** Memory of ended sessions at the external identity provider: longer than a sign-in can take. */
  upstreamEnd: 60 * MINUTE,
  /** For the library only: grants end by `idleSeconds` after the last use. */
  grant: 181 * DAY,
  /** If the member could not choose the end when they consented. */
  earlierGrant: 14 * DAY,
  /** Used refresh tokens are kept this long to detect reuse. */
  usedRefreshToken: 30 * DAY,
} as const;
