import { describe, expect, it } from '@jest/globals';
import { networkOf } from './network.js';

describe('networkOf', () => {
  it('keeps an IPv4 address, in IPv6 too', () => {
    expect(networkOf('203.0.113.7')).toBe('203.0.113.7');
    expect(networkOf('::ffff:203.0.113.7')).toBe('203.0.113.7');
    expect(networkOf('')).toBe('');
  });

  it('takes the first 64 bits of an IPv6 address, however it is written', () => {
    const network = '2001:db8:5:0';
    for (const address of ['2001:db8:5::1', '2001:0DB8:0005:0000:ffff::', '2001:db8:5:0:1:2:3:4'])
      expect(networkOf(address)).toBe(network);
    expect(networkOf('2001:db8:5:1::1')).not.toBe(network);
    expect(networkOf('::1')).toBe('0:0:0:0');
    expect(networkOf('fe80::1%eth0')).toBe('fe80:0:0:0');
  });
});
