import { LIFETIMES } from '../provider/lifetimes.js';

/**
 * Writes the SQL for a session's end.
 *
 * @param signedInAt parameter: when the member signed in, in seconds since 1970, or null
 * @param seconds parameter: how long the session may be idle
 */
export function sessionEnds(signedInAt: string, seconds: string): string {
  return `LEAST(now() + make_interval(secs => ${seconds}), to_timestamp(${signedInAt}) + make_interval(secs => ${LIFETIMES.longestSession}))`;
}
