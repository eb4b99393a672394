import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import type { Request } from 'express';

/**
 * Finds the address that a request came from, believed as far as TRUST_PROXY says: an IPv4 address, or an IPv6 one in its one
 * canonical form (RFC 5952), without port, zone or brackets; IPv4 in IPv6 (`::ffff:…`) as IPv4. Nothing else is ever
 * taken for an address: if an entry of X-Forwarded-For is not one (`unknown`, RFC 7239 §6.2; `_hidden`, §6.3), the result is
 * that of the nearest proxy behind it that has one, or else the socket's.
 *
 * @returns undefined if the connection is already closed
 */
export function addressOf(request: Request): string | undefined {
  const { context } = request;
  if (context.address === undefined) {
    const hops = [...request.ips, request.socket.remoteAddress ?? ''];
    for (const hop of hops) {
      context.address = parseAddress(hop);
      if (context.address !== undefined) break;
    }
  }
  return context.address;
}

/** Reads an address, with or without a port or zone. @returns undefined if it is not an address, or something other than a port or zone follows it */
export function parseAddress(text: string): string | undefined {
  const [, bracketed, ported] = /^\s*(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})\s*$/.exec(text) ?? [];
  const bare = (bracketed ?? ported ?? text.trim())
    .replace(/^([^%]*)%[\w.%-]+$/, '$1')
    .replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return undefined;
  const { address } = new SocketAddress({ address: bare, family: 'ipv6' });
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

/**
 * Returns the key under which limits count an address: an IPv4 address itself, or the first 64 bits of an IPv6 address, which belong to one subscriber.
 *
 * @param address of {@link addressOf}
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return address ?? '';
  const [head = '', tail] = address.split('::');
  const groups = [head, tail ?? ''].map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - groups.flat().length }, () => '0');
  return [...groups[0]!, ...zeros, ...groups[1]!].slice(0, 4).join(':');
}
