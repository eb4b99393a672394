import { describe, expect, it } from '@jest/globals';
import { fingerprint, sha256 } from './digests.js';

describe('digests', () => {
  it('equal SHA-256 (FIPS 180-4) in the requested encoding', () => {
    const hex = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    expect(sha256('abc', 'hex')).toBe(hex);
    expect(sha256(Buffer.from('abc'), 'base64')).toBe(Buffer.from(hex, 'hex').toString('base64'));
    expect(sha256('abc', 'base64url')).toBe(Buffer.from(hex, 'hex').toString('base64url'));
  });

  it('that identify content have 27 characters, and are equal for text and bytes', () => {
    expect(fingerprint('abc')).toMatch(/^[\w-]{27}$/);
    expect(fingerprint(Buffer.from('abc'))).toBe(fingerprint('abc'));
    expect(fingerprint('abd')).not.toBe(fingerprint('abc'));
  });
});
