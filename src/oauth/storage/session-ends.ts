import { LIFETIMES } from '../provider/lifetimes.js';

/**
 * Writes SQL for when a session ends.
 *
 * @param signedInAt parameter: when the member signed in, in seconds since 1970, or null
 * @param seconds parameter: for how long it may be left alone
 */
export function sessionEnds(signedInAt: string, seconds: string): string {
  return `LEAST(now() + make_interval(secs => ${seconds}), to_timestamp(${signedInAt}) + make_interval(secs => ${LIFETIMES.longestSession}))`;
}
