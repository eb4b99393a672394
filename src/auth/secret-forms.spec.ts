import { describe, expect, it } from '@jest/globals';
import { makeKey } from './api-keys/api-key-format.js';
import { BASE62, randomBytes, randomText } from '../crypto/random.js';
import {
  CLIENT_SECRET_PREFIX,
  findOpaqueSecret,
  looksSecret,
  withoutSecrets,
} from '../values/secret-forms.js';
import { makeWebhookSecret } from '../crypto/webhook-signatures.js';

const token = randomBytes(32).toString('base64url');

describe('secret detection', () => {
  it.each([
    ['API key', makeKey('live').key],
    ['test key', makeKey('test').key],
    ['client secret', CLIENT_SECRET_PREFIX + randomText(43, BASE62)],
    ['webhook secret', makeWebhookSecret()],
  ])('recognizes a new %s, and removes it from a text', (_, secret) => {
    expect(looksSecret(secret)).toBe(true);
    expect(looksSecret(secret.slice(0, 40))).toBe(true);
    expect(withoutSecrets(`{"a":"x${secret}"}`)).not.toContain(secret.slice(-10));
  });

  it('recognizes an opaque token, and removes it from a text after a scheme or a path', () => {
    expect(looksSecret(token)).toBe(true);
    expect(findOpaqueSecret(`Bearer ${token}`)).toBe(token);
    for (const place of ['Bearer ', 'DPoP ', '/calendar/'])
      expect(withoutSecrets(`x ${place}${token}`)).toBe(`x ${place}[redacted]`);
  });

  it.each(['mine-1', 'b3f1c1de-5c38-4c5e-8f5a-0a8e6b9f2d11', 'pua_session', 'x'.repeat(64)])(
    'does not treat the text %s as a secret',
    (text) => {
      expect([looksSecret(text), withoutSecrets(text)]).toEqual([false, text]);
    },
  );
});
