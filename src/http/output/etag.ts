import { fingerprint } from '../../crypto/digests.js';

/** Makes the strong validator of exactly these bytes (RFC 9110 §8.8.3). */
export function etagOf(json: string | Buffer): string {
  return `"${fingerprint(json)}"`;
}

/** Makes a strong validator that also holds the state of the row behind the bytes, for {@link statesOf}. @param state hexadecimal */
export function etagWithState(state: string, json: string): string {
  return `"${state}-${fingerprint(json)}"`;
}

/** Tells whether If-None-Match names this validator (weak comparison, RFC 9110 §13.1.2). */
export function noneMatch(header: string, etag: string): boolean {
  return header.trim() === '*' || entityTags(header).some((tag) => tag.replace(/^W\//, '') === etag);
}

/**
 * Reads the states of rows that If-Match names (strong comparison, RFC 9110 §13.1.1): `undefined` for none given or
 * `*`, which any row satisfies; tags that are weak or not ours name none.
 */
export function statesOf(header: string | undefined): string[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  return entityTags(header).flatMap((tag) => {
    const match = /^"([0-9a-f]{1,16})-[A-Za-z0-9_-]{27}"$/.exec(tag);
    return match ? [match[1]!] : [];
  });
}

function entityTags(header: string): string[] {
  return header.match(/(?:W\/)?"[^"]*"/g) ?? [];
}
