import { once } from 'node:events';
import { BlockList, connect, isIP, isIPv4, isIPv6, SocketAddress, type NetConnectOpts } from 'node:net';
import type { Request } from 'express';

/** Returns the sender's address, from trusted proxies (TRUST_PROXY) or the socket; undefined if it is unknown. */
export function addressOf({ context, socket }: Request): string | undefined {
  return (context.address ??= parseAddress(socket.remoteAddress ?? ''));
}

/** Reads an address with or without port or zone. @returns IPv4 (also from `::ffff:…`), or canonical IPv6 (RFC 5952); else undefined */
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

/** Returns an address's key for limits: the IPv4 address, or the first 64 bits of the IPv6 address. @param address of {@link addressOf} */
export function networkOf(address: string | undefined): string {
  if (address === undefined || !isIPv6(address)) return address ?? '';
  const [head = '', tail] = address.split('::');
  const groups = [head, tail ?? ''].map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - groups.flat().length }, () => '0');
  return [...groups[0]!, ...zeros, ...groups[1]!].slice(0, 4).join(':');
}

/** @param networks in CIDR notation, separated by white space */
function makeBlockList(networks: string): BlockList {
  const block = new BlockList();
  for (const network of networks.split(/\s+/)) {
    const [address, prefix] = network.split('/') as [string, string];
    block.addSubnet(address, Number(prefix), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return block;
}

/** Networks that do not count as public: mainly those of IANA's special-purpose registries (RFC 6890). */
const special =
  makeBlockList(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
  192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15
  198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20`);
/** All public IPv6 networks, except those in {@link special}. */
const global = makeBlockList('2000::/3');
const loopback = makeBlockList('127.0.0.0/8 ::1/128');

/** Tells whether an IP address is on the public internet, not in a private, local or other special network. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !special.check(address, 'ipv4');
  return family === 6 && global.check(address, 'ipv6') && !special.check(address, 'ipv6');
}

/** Tells whether an IP address is a loopback address, which other hosts cannot reach. */
export function isLoopbackAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && loopback.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Tells whether a process accepts connections at the address. */
export async function isListening(there: NetConnectOpts): Promise<boolean> {
  const socket = connect(there);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
