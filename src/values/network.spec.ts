import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isIP } from 'node:net';
import { isPublicAddress, networkOf, parseAddress } from './network.js';

describe('parseAddress', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    [' 203.0.113.7 ', '203.0.113.7'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['[203.0.113.7]:4711', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:443', '203.0.113.7'],
    ['2001:DB8:0:0::0001', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['2001:db8::1%eth0', '2001:db8::1'],
    ['[fe80::1%25eth0.1]:443', 'fe80::1'],
    ['[fe80::1%eth0.1]:443', 'fe80::1'],
  ])('parses %s as %s', (text, address) => expect(parseAddress(text)).toBe(address));

  it.each([
    '',
    ' ',
    'unknown',
    '_hidden',
    '-',
    '203.0.113.7:http',
    '203.0.113',
    '203.0.113.7.8',
    '1.2.3.4/8',
    '[::1',
    '"::1"',
  ])('rejects %j', (text) => expect(parseAddress(text)).toBeUndefined());

  it('returns an address or undefined for any text, and parses its own output', () => {
    const near = fc.stringMatching(/^[[\]0-9a-f:.%]{0,30}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), near, fc.ipV4(), fc.ipV6()), (text) => {
        const address = parseAddress(text);
        if (isIP(text) !== 0) expect(address).toBeDefined();
        if (address === undefined) return;
        expect(isIP(address)).not.toBe(0);
        expect(parseAddress(address)).toBe(address);
      }),
    );
  });
});

describe('networkOf', () => {
  it('keeps an IPv4 address', () => {
    expect(networkOf('203.0.113.7')).toBe('203.0.113.7');
    expect(networkOf(undefined)).toBe('');
  });

  it('returns the first 64 bits of an IPv6 address, regardless of its notation', () => {
    const of = (text: string) => networkOf(parseAddress(text));
    for (const address of ['2001:db8:5::1', '2001:0DB8:0005:0000:ffff::', '2001:db8:5:0:1:2:3:4'])
      expect(of(address)).toBe('2001:db8:5:0');
    expect(of('2001:db8:5:1::1')).not.toBe('2001:db8:5:0');
    expect(of('::1')).toBe('0:0:0:0');
    expect(of('fe80::1%eth0')).toBe('fe80:0:0:0');
  });
});

describe('the set of public internet addresses', () => {
  it.each(['1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700:4700::1111', '2a00:1450:4001:81b::200e'])(
    'includes %s',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  const PRIVATE =
    '0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1 198.18.0.1 203.0.113.9 224.0.0.1 255.255.255.255 ' +
    ':: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 5f00::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1';
  it.each([...PRIVATE.split(' '), 'localhost', '127.1', ''])('does not include %j', (address) =>
    expect(isPublicAddress(address)).toBe(false),
  );
});
