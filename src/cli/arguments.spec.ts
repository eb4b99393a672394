import { describe, expect, it } from '@jest/globals';
import { InvalidArgumentError } from 'commander';
import { collectCidr, durationBetween, parseDuration, parseScopes, parseUsername } from './arguments.js';

describe('parseDuration', () => {
  it.each([
    ['0s', 0],
    ['90s', 90],
    ['15m', 900],
    ['24h', 86_400],
    ['90d', 7_776_000],
  ])('reads %s as %s seconds', (text, seconds) => expect(parseDuration(text)).toBe(seconds));

  it.each(['', '5', 'd', '1w', '1.5h', '-1d', '1d2h', ' 1d', '1D', '1e3s', '9999999999s'])(
    'rejects %p',
    (text) => expect(() => parseDuration(text)).toThrow(InvalidArgumentError),
  );

  it('with bounds (durationBetween) accepts both bounds, and rejects durations outside', () => {
    const read = durationBetween('60s', '3600s');
    expect([read('1m'), read('1h')]).toEqual([60, 3600]);
    for (const outside of ['59s', '3601s']) expect(() => read(outside)).toThrow('from 60s to 3600s');
  });
});

describe('parseScopes', () => {
  it('sorts the scopes and removes duplicates', () =>
    expect(parseScopes('events:read, profile:read,events:read')).toEqual(['profile:read', 'events:read']));
  it('returns no scopes for an empty text', () => expect(parseScopes('')).toEqual([]));
  it.each(['openid', 'constructor', 'profile:read events:read'])('rejects %p', (text) =>
    expect(() => parseScopes(text)).toThrow(/The scopes are: profile:read, profile:write/),
  );
});

describe('collectCidr', () => {
  it.each([
    ['203.0.113.0/24', '203.0.113.0/24'],
    ['203.0.113.7', '203.0.113.7/32'],
    ['2001:db8::/32', '2001:db8::/32'],
    ['::1', '::1/128'],
    ['::ffff:203.0.113.7', '203.0.113.7/32'],
    ['::ffff:203.0.113.0/120', '203.0.113.0/24'],
  ])('appends %s to the list as %s', (text, network) =>
    expect(collectCidr(text, ['10.0.0.0/8'])).toEqual(['10.0.0.0/8', network]),
  );

  it.each([
    '',
    '203.0.113',
    '203.0.113.0/33',
    '::/129',
    '203.0.113.0/',
    '1.2.3.4/8/8',
    'fe80::1%eth0',
    '1.2.3.4/-1',
    'host',
  ])('rejects %p', (text) => expect(() => collectCidr(text)).toThrow(InvalidArgumentError));
});

describe('parseUsername', () => {
  it.each(['12345', 'erased-1', '', ' ada', 'ada ', 'x'.repeat(101), 'a\0b'])('rejects %p', (text) =>
    expect(() => parseUsername(text)).toThrow(InvalidArgumentError),
  );
  it('accepts a name with a space and an accent', () => expect(parseUsername('Zoë 2')).toBe('Zoë 2'));
});
