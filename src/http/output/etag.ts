import { fingerprint } from '../../crypto/digests.js';

/** Makes the strong validator of exactly these bytes (RFC 9110 §8.8.3). */
export function etagOf(json: string | Buffer): string {
  return `"${fingerprint(json)}"`;
}

/** Makes a strong validator that also holds the version of the row behind the bytes, for {@link versionsOf}. */
export function versionedEtag(version: number, json: string): string {
  return `"${version}-${fingerprint(json)}"`;
}

/** Tells whether If-None-Match names this validator (weak comparison, RFC 9110 §13.1.2). */
export function noneMatch(header: string, etag: string): boolean {
  return header.trim() === '*' || entityTags(header).some((tag) => tag.replace(/^W\//, '') === etag);
}

/**
 * Reads the row versions that If-Match names (strong comparison, RFC 9110 §13.1.1): `undefined` for none given or
 * `*`, which any row satisfies; tags that are weak or not ours name no version.
 */
export function versionsOf(header: string | undefined): number[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  return entityTags(header).flatMap((tag) => {
    const match = /^"(\d{1,15})-[A-Za-z0-9_-]{27}"$/.exec(tag);
    return match ? [Number(match[1])] : [];
  });
}

function entityTags(header: string): string[] {
  return header.match(/(?:W\/)?"[^"]*"/g) ?? [];
}
