/** The session at the platform's own login of which a browser session came: HMACs, base64url, by which it is found to be ended. */
export interface UpstreamSession {
  /** Of `sub`. */
  readonly subject: string;
  /** Of `sid`; null where the provider named none. */
  readonly session: string | null;
  /** When the member came from there, by the database's clock: seconds since 1970. Missing in what was stored, which is older than any end. */
  readonly at?: number;
}

/** For so long it is remembered what has ended at the provider, in seconds: longer than a sign-in can be under way. */
export const END_REMEMBERED_SECONDS = 3_600;

/** As it is stored with a browser session: both null where that came of a password. */
export function upstreamKeys(
  upstream: UpstreamSession | undefined,
): [subject: Buffer | null, session: Buffer | null] {
  return [keyOf(upstream?.subject), keyOf(upstream?.session)];
}

/** What {@link upstreamKeys} stored. */
export function upstreamSessionOf(
  subject: Buffer | null,
  session: Buffer | null,
): UpstreamSession | undefined {
  if (subject === null) return undefined;
  return { subject: subject.toString('base64url'), session: session?.toString('base64url') ?? null };
}

function keyOf(text: string | null | undefined): Buffer | null {
  return text === null || text === undefined ? null : Buffer.from(text, 'base64url');
}
