import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

/** A local name server: returns the IPv4 addresses of a few names, and never responds for other names. */
export class NameServer {
  /** Number of queries so far. */
  asked = 0;

  private constructor(private readonly socket: Socket) {}

  static async start(addresses: Readonly<Record<string, string>> = {}): Promise<NameServer> {
    const socket = createSocket('udp4');
    const server = new NameServer(socket);
    socket.on('message', (question, { address, port }) => {
      server.asked++;
      const response = responseTo(question, addresses);
      if (response) socket.send(response, port, address);
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return server;
  }

  /** The address in the format of resolvers. */
  get address(): string {
    return `127.0.0.1:${this.socket.address().port}`;
  }

  close(): void {
    this.socket.close();
  }
}

const HEADER_BYTES = 12;
const TYPE_A = 1;

/** Writes a response (RFC 1035 §4.1). @returns undefined for an unknown name */
function responseTo(question: Buffer, addresses: Readonly<Record<string, string>>): Buffer | undefined {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = question[at++]!; length > 0; length = question[at++]!)
    labels.push(question.toString('latin1', at, (at += length)));
  const address = addresses[labels.join('.').toLowerCase()];
  if (address === undefined) return undefined;
  const isA = question.readUInt16BE(at) === TYPE_A;
  const header = Buffer.from(question.subarray(0, HEADER_BYTES));
  header.writeUInt16BE(0x81_80, 2); // a response, without an error
  header.writeUInt32BE(isA ? 0x1_0001 : 0x1_0000, 4); // one question, and one address or none
  header.writeUInt32BE(0, 8);
  const asked = question.subarray(HEADER_BYTES, at + 4);
  // The name of the query, type A, class IN, TTL 0, four bytes.
  const record = [0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)];
  return Buffer.concat([header, asked, Buffer.from(isA ? record : [])]);
}
