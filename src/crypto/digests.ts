import { hash } from 'node:crypto';

/** Hashes a text, or bytes, that nobody should find another for (SHA-256). */
export function sha256(content: string | Buffer, encoding: 'base64' | 'base64url' | 'hex'): string {
  return hash('sha256', content, encoding);
}

/** Names a content by 27 characters, so that another has another name (SHA-1): for what nobody gains by forging, such as an ETag. */
export function fingerprint(content: string | Buffer): string {
  return hash('sha1', content, 'base64url');
}
