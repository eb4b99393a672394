import { describe, expect, it } from '@jest/globals';
import { pepperIdsOf, SecretHashes } from './secret-hashes.js';
import { Secrets } from './secrets.js';

const OLD = Buffer.alloc(32, 'a');
const NEW = Buffer.alloc(32, 'b');

describe('the hash of an API key', () => {
  const KEY = 'pua_test_key';

  it('is unchanged since the first release, as is its pepper’s id', () => {
    const [id] = pepperIdsOf(new Secrets(OLD));
    expect(id!.toString('hex')).toBe('58da37bb'); // computed by another program, like the hash
    expect(new SecretHashes(new Secrets(OLD), 'api_keys').store(KEY).hash.toString('hex')).toBe(
      'b5ef51257659487257a9c94283264508d933363f64550f2cae114c0ad92c6dc0',
    );
  });

  it('is created with the current pepper, and can also be verified with the previous one', () => {
    const before = new SecretHashes(new Secrets(OLD), 'api_keys');
    const both = new SecretHashes(new Secrets(NEW, OLD), 'api_keys');
    expect(both.store(KEY).hash).not.toEqual(before.store(KEY).hash);
    expect(both.matches(before.store(KEY).hash, KEY)).toBe(true);
    const [current, previous] = pepperIdsOf(new Secrets(NEW, OLD));
    expect([previous]).toEqual(pepperIdsOf(new Secrets(OLD)));
    expect(current).not.toEqual(previous);
    expect([current, previous].map((id) => both.isCurrent(id!))).toEqual([true, false]);
    expect(both.store(KEY)).toMatchObject({ pepper_id: current, last_four: '_key' });
  });

  it('matches its key only under its pepper', () => {
    const [hashes, before] = [
      new SecretHashes(new Secrets(NEW), 'api_keys'),
      new SecretHashes(new Secrets(OLD), 'api_keys'),
    ];
    expect(hashes.matches(hashes.store(KEY).hash, KEY)).toBe(true);
    expect(hashes.matches(hashes.store(KEY).hash, `${KEY}.`)).toBe(false);
    expect(hashes.matches(before.store(KEY).hash, KEY)).toBe(false);
    expect(hashes.matches(Buffer.alloc(32), KEY)).toBe(false);
    expect(hashes.matches(Buffer.alloc(0), KEY)).toBe(false);
  });

  it('differs between tables', () => {
    const other = new SecretHashes(new Secrets(NEW), 'oauth_client_secrets');
    expect(other.matches(new SecretHashes(new Secrets(NEW), 'api_keys').store(KEY).hash, KEY)).toBe(false);
  });
});
