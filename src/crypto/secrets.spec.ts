import { describe, expect, it } from '@jest/globals';
import { deriveKey, Secrets } from './secrets.js';

const secret = (text: string) => Buffer.alloc(32, text);
const hexOf = (secrets: Secrets, label: string) =>
  secrets.derive(label).map((key) => key.export().toString('hex'));

describe('the keys derived from SECRET_KEY', () => {
  it('equal HKDF-SHA-256, so that stored data stays readable', () => {
    // hmac(hmac(32 zeros, secret), "pua:x" 0x01), computed by another program
    const key = '1df265a2ddb0ad60447903971847c0054b860e84bfe8e1cfa2f1d0b281987bc0';
    expect(deriveKey(secret('a'), 'x').toString('hex')).toBe(key);
    expect(hexOf(new Secrets(secret('a')), 'x')).toEqual([key]);
  });

  it('differ by purpose and by secret', () => {
    const keys = [secret('a'), secret('b')].flatMap((one) =>
      ['x', 'y'].map((label) => deriveKey(one, label)),
    );
    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(4);
  });

  it('include the keys of the previous secret, after the current keys', () => {
    const [before] = hexOf(new Secrets(secret('old')), 'x');
    const secrets = new Secrets(secret('new'), secret('old'));
    expect(hexOf(secrets, 'x')).toEqual([expect.not.stringContaining(before!), before]);
    expect([secrets.hasPrevious, new Secrets(secret('new')).hasPrevious]).toEqual([true, false]);
  });
});
