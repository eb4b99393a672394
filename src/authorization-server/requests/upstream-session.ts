/** The session at the platform's own login from which a browser session came: base64url HMACs, to find that one when it ends. */
export interface UpstreamSession {
  /** HMAC of `sub`. */
  readonly subject: string;
  /** HMAC of `sid`; null if the provider sent none. */
  readonly session: string | null;
  /** When the member came from there: database clock, seconds since 1970, with their fraction. Missing in stored sessions, which predate any end. */
  readonly at?: number;
}

/** For how long ended upstream sessions are remembered, in seconds: longer than a sign-in can take. */
export const END_REMEMBERED_SECONDS = 3_600;

/** The columns stored with a browser session: both null if it came from a password sign-in. */
export function upstreamKeys(
  upstream: UpstreamSession | undefined,
): [subject: Buffer | null, session: Buffer | null] {
  const keyOf = (text?: string | null) => (text == null ? null : Buffer.from(text, 'base64url'));
  return [keyOf(upstream?.subject), keyOf(upstream?.session)];
}

/** Reads what {@link upstreamKeys} stored. */
export function upstreamSessionOf(
  subject: Buffer | null,
  session: Buffer | null,
): UpstreamSession | undefined {
  if (subject === null) return undefined;
  return { subject: subject.toString('base64url'), session: session?.toString('base64url') ?? null };
}
