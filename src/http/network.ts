import { isIPv6 } from 'node:net';

/**
 * What limits count an address by: itself; of an IPv6 one the first 64 bits, which are one subscriber's; IPv4 in IPv6
 * (`::ffff:…`) as IPv4.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = [head, tail ?? ''].map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - groups.flat().length }, () => '0');
  return [...groups[0]!, ...zeros, ...groups[1]!]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
