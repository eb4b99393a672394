import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Makes a server listen on a free port. @returns its origin */
export async function listen(server: Server, host = '127.0.0.1'): Promise<string> {
  await once(server.listen(0, host), 'listening');
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}
