import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { costsAtMost } from '../../test/support/timing.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../runtime/logger.js';
import { CredentialCache, type KnownCredential } from './credential-cache.js';
import { RevocationChannel, type Revocation } from './revocation-channel.js';

/** A channel that is always trusted, even on a slow host, and announces nothing by itself. */
class HeardChannel extends RevocationChannel {
  override get trusted(): boolean {
    return true;
  }
}

/** The credential with this number, which never expires. */
const knownAs = (i: number, kind: 'api_key' | 'oauth_token'): KnownCredential => ({
  principal: {
    kind,
    userId: i % 5_000,
    scopes: [],
    scopesText: '',
    credentialId: `id${i}`,
    keyId: null,
    clientId: kind === 'api_key' ? null : `client:${i % 100}`,
    expiresAt: null,
    accessEndsAt: null,
    createdAt: '',
  },
  expiresAtMs: Infinity,
  allowed: undefined,
  developedApp: undefined,
});

describe('the credential cache', () => {
  // A credential is cached for half a minute: the frozen clock keeps it cached.
  beforeEach(() => void jest.spyOn(performance, 'now').mockReturnValue(0));
  afterEach(() => void jest.restoreAllMocks());

  it('drops revoked entries without scanning the other entries', async () => {
    const channel = new HeardChannel({} as Config, {} as Logger);
    const cache = new CredentialCache(channel);
    const learn = (i: number, kind: 'api_key' | 'oauth_token') =>
      cache.learn(kind, `credential ${i}`, () => Promise.resolve(knownAs(i, kind)));
    const kindOf = (i: number) => (i % 2 === 0 ? 'api_key' : 'oauth_token');
    for (let i = 0; i < 20_000; i++) await learn(i, kindOf(i));
    const known = () => {
      let count = 0;
      for (let i = 0; i < 20_000; i++) if (cache.find(kindOf(i), `credential ${i}`)) count++;
      return count;
    };
    expect(known()).toBe(20_000);
    const announceTo = (one: HeardChannel) => () => {
      for (let i = 0; i < 1_000; i++) one.announce({ kind: 'key', id: `unknown${i}` });
    };
    const idle = new HeardChannel({} as Config, {} as Logger);
    new CredentialCache(idle);
    expect(await costsAtMost(20, announceTo(channel), announceTo(idle))).toBe(true);
    channel.announce({ kind: 'key', id: 'id0' });
    channel.announce({ kind: 'grant', id: 'id2' }); // the key with that id stays cached
    channel.announce({ kind: 'grant', id: 'id1' });
    channel.announce({ kind: 'user', id: '4' }); // drops 4 credentials
    channel.announce({ kind: 'client', id: 'client:7' }); // drops 200 credentials
    expect(known()).toBe(20_000 - 2 - 4 - 200);
    channel.announce('all');
    expect(known()).toBe(0);
  });

  it.each<[string, Revocation]>([
    ['the credential', { kind: 'key', id: 'id1' }],
    ['every credential of the member', { kind: 'user', id: '1' }],
    ['every credential', 'all'],
  ])('does not store a credential whose query was running when %s was revoked', async (_, revocation) => {
    const channel = new HeardChannel({} as Config, {} as Logger);
    const cache = new CredentialCache(channel);
    const lookUp = Promise.withResolvers<KnownCredential>();
    const learning = cache.learn('api_key', 'credential 1', () => lookUp.promise);
    channel.announce(revocation);
    lookUp.resolve(knownAs(1, 'api_key')); // the state before the revocation
    await learning;
    expect(cache.find('api_key', 'credential 1')).toBeUndefined();
    await cache.learn('api_key', 'credential 1', () => Promise.resolve(knownAs(1, 'api_key')));
    expect(cache.find('api_key', 'credential 1')).toBeDefined();
  });
});
