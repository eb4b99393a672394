import { hash } from 'node:crypto';

/** Hashes with SHA-256, for uses that rely on collision resistance. */
export function sha256(content: string | Buffer, encoding: 'base64' | 'base64url' | 'hex'): string {
  return hash('sha256', content, encoding);
}

/** Identifies content by 27 characters (SHA-1), for uses that need no collision resistance, such as an ETag. */
export function fingerprint(content: string | Buffer): string {
  return hash('sha1', content, 'base64url');
}
