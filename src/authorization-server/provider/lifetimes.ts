const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** How long everything lives, in seconds; a test holds the rules between them. */
export const LIFETIMES = {
  authorizationCode: MINUTE,
  accessToken: 10 * MINUTE,
  idToken: 10 * MINUTE,
  interaction: 30 * MINUTE,
  /** The challenge that a passkey signs. */
  passkeyChallenge: 2 * MINUTE,
  /** The link in a mail that sets a new password. */
  passwordReset: 30 * MINUTE,
  /** The longest that a client’s assertion may be valid: its id is kept until it expires. */
  clientAssertion: 5 * MINUTE,
  /** A browser session, from its last use … */
  session: DAY,
  /** … and from the sign-in, whatever happens. */
  longestSession: 30 * DAY,
  /** A browser session without a member, which only carries a sign-out form. */
  anonymousSession: 10 * MINUTE,
  /** How long it is remembered that a session at the platform's own login has ended: longer than a sign-in can take. */
  upstreamEnd: 60 * MINUTE,
  /** A grant, until its code is redeemed: from then on its last use counts, see `idleSeconds`. */
  grant: 181 * DAY,
  /** A grant without a new consent, if the member could not choose its end when they consented. */
  earlierGrant: 14 * DAY,
  /** A used refresh token is kept as long, to notice that it is used again. */
  usedRefreshToken: 30 * DAY,
} as const;
