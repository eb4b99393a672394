import {} from '../../config/config.js';
import { OperatorError } from '../../values/operator-error.js';

const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** How long everything lives, in seconds. */
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
  /** Web: since the sign-in. */
  webRefresh: 14 * DAY,
  /** Native: since the last refresh … */
  nativeRefreshIdle: 30 * DAY,
  /** … and since the sign-in. */
  nativeRefresh: 180 * DAY,
  /** The family of tokens: a grant that ended before its tokens would sign its member out. */
  grant: 181 * DAY,
  /** A grant for which no code has been issued yet. */
  unusedGrant: 60 * MINUTE,
} as const;

export type Lifetimes = { readonly [Name in keyof typeof LIFETIMES]: number };

/** Checks that the lifetimes are consistent. @throws OperatorError where one would end what another one promises */
export function checkLifetimes(lifetimes: Lifetimes): void {
  const rules: [boolean, string][] = [
    [
      lifetimes.grant >= Math.max(lifetimes.webRefresh, lifetimes.nativeRefresh),
      'a grant must outlive every refresh token, or all members are signed out at once',
    ],
    [lifetimes.unusedGrant >= lifetimes.interaction, 'a grant must outlive the sign-in in which it is made'],
    [
      lifetimes.nativeRefresh >= lifetimes.nativeRefreshIdle,
      'the longest life of a native refresh token must not be under its idle life',
    ],
    [
      Math.min(lifetimes.webRefresh, lifetimes.nativeRefreshIdle) > lifetimes.accessToken,
      'a refresh token must outlive its access token',
    ],
    [
      lifetimes.longestSession >= lifetimes.session,
      'the longest life of a browser session must not be under its idle life',
    ],
    [
      lifetimes.authorizationCode <= 10 * MINUTE,
      'an authorization code may live 10 minutes at most (RFC 6749 §4.1.2)',
    ],
  ];
  const broken = rules.filter(([holds]) => !holds).map(([, rule]) => rule);
  if (broken.length > 0) throw new OperatorError(`The lifetimes do not fit together: ${broken.join('; ')}`);
}
