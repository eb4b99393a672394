/** Version, trace, the caller's span, flags; of versions after 00 more may follow (W3C Trace Context §3.2). */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/**
 * The trace that a request is part of: 32 hexadecimal digits.
 *
 * @param traceparent the header of that name
 * @returns undefined where there is none, or one that is not valid, which says nothing then (§4.3)
 */
export function traceIdOf(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, version, traceId, more] = TRACEPARENT.exec(traceparent) ?? [];
  return version === '00' && more !== undefined ? undefined : traceId;
}
