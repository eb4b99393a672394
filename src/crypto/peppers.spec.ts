import { describe, expect, it } from '@jest/globals';
import { apiKeyHmac, pepperIdsOf } from './peppers.js';
import { Secrets } from './secrets.js';

const OLD = Buffer.alloc(32, 'a');
const NEW = Buffer.alloc(32, 'b');
const KEY = 'pua_test_key';

describe('the hash of an API key', () => {
  it('and the name of its pepper are what the database holds since the first release', () => {
    const [id] = pepperIdsOf(new Secrets(OLD));
    expect(id!.toString('hex')).toBe('58da37bb'); // computed by another program, as is the hash
    expect(apiKeyHmac(new Secrets(OLD)).of(KEY).toString('hex')).toBe(
      'b5ef51257659487257a9c94283264508d933363f64550f2cae114c0ad92c6dc0',
    );
  });

  it('is made with the current pepper, and the one before is still known', () => {
    const before = apiKeyHmac(new Secrets(OLD));
    const both = apiKeyHmac(new Secrets(NEW, OLD));
    expect(both.of(KEY)).not.toEqual(before.of(KEY));
    expect(both.verify(before.of(KEY), KEY)).toBe(true);
    const [current, previous] = pepperIdsOf(new Secrets(NEW, OLD));
    expect([previous]).toEqual(pepperIdsOf(new Secrets(OLD)));
    expect(current).not.toEqual(previous);
  });

  it('matches its key under its pepper alone', () => {
    const [hmac, before] = [apiKeyHmac(new Secrets(NEW)), apiKeyHmac(new Secrets(OLD))];
    expect(hmac.verify(hmac.of(KEY), KEY)).toBe(true);
    expect(hmac.verify(hmac.of(KEY), `${KEY}.`)).toBe(false);
    expect(hmac.verify(before.of(KEY), KEY)).toBe(false);
    expect(hmac.verify(Buffer.alloc(32), KEY)).toBe(false);
    expect(hmac.verify(Buffer.alloc(0), KEY)).toBe(false);
  });
});
