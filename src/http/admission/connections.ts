import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf, parseAddress } from '../../values/network.js';

/** Limits on clients' connections. */
export const CONNECTION_BOUNDS = {
  /** Maximum open connections; beyond it, the server closes some that are idle or still sending a request, or else the new one. */
  open: 4_096,
  /** Maximum connections of one network address; beyond it, the server closes an idle one, or else the new one. */
  openOfPeer: 1_024,
  /** Maximum requests with incomplete bodies; beyond it, the server rejects some earlier ones with 408, or disconnects their clients. */
  unfinished: 1_024,
  /** Maximum pipelined requests that wait for an earlier response; beyond it, the server closes a further request's connection. */
  ahead: 4_096,
  /** Maximum responses that clients have not read completely; beyond it, the server closes the oldest one's connection. */
  unread: 256,
  /** Maximum unread bytes of all such responses; above this sum, the server disconnects the client with the most. */
  unreadBytes: 64 * 1024 * 1024,
  /** Maximum time in ms for which the client reads nothing of such a response. */
  stalledMs: 10_000,
  /** Maximum time for the client to read the whole response, in ms: 200 KB at 10 KB/s take 20 s. */
  unreadMs: 60_000,
};
export type ConnectionBounds = Readonly<typeof CONNECTION_BOUNDS>;

/** Closes one in 16 of an address's candidates at once, since each choice scans all connections. */
const BATCH = 16;

interface Connection {
  readonly peer: string;
  /** Address of the last request's sender, which differs from the peer's behind a proxy. */
  address: string;
  /** The response to the last request, until it is finished. */
  last: ServerResponse | undefined;
  /** Number of requests that wait for the response to an earlier request. */
  ahead: number;
  /** Orders connections by their last request. */
  order: number;
}

/**
 * Bounds a client's resources. Responses on a connection are sequential (RFC 9112 §9.3.2), each after the system has accepted the previous
 * response, and the server stops reading while a request waits. So a client that does not read gets no more responses, and is disconnected.
 */
export class Connections {
  readonly #of = new Map<Socket, Connection>();
  /** Connections by peer, oldest first. */
  readonly #ofPeer = new Map<string, Set<Socket>>();
  readonly #unfinished = new Set<Socket>();
  readonly #unread = new Set<Socket>();
  #ahead = 0;
  #received = 0;

  /** @param answer handles a request at its turn on the connection */
  constructor(
    server: Server,
    answer: (request: IncomingMessage, response: ServerResponse) => void,
    private readonly bounds: ConnectionBounds = CONNECTION_BOUNDS,
  ) {
    server.on('connection', (socket: Socket) => this.#accept(socket));
    server.on('request', (request, response) => this.#inTurn(response, () => answer(request, response)));
    // Without a listener for these events, Node would respond out of order.
    for (const event of ['checkContinue', 'checkExpectation'])
      server.on(event, (request, response) => server.emit('request', request, response));
  }

  state(): Record<'open' | 'idle' | 'unfinished' | 'ahead' | 'unread', number> {
    const idle = [...this.#of.values()].filter(({ last }) => !last).length;
    const { size: unfinished } = this.#unfinished;
    return { open: this.#of.size, idle, unfinished, ahead: this.#ahead, unread: this.#unread.size };
  }

  /** Unfinished responses; of several on one connection only the last. */
  *lastResponses(): Iterable<ServerResponse> {
    for (const { last } of this.#of.values()) if (last) yield last;
  }

  /** Closes connections on which nothing has arrived: browsers open some in advance. */
  closeSilent(): void {
    for (const socket of this.#of.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  /** Stores and returns the sender's address. @param forwarded the sender according to a proxy */
  addressOf(socket: Socket, forwarded: string | undefined): string {
    const connection = this.#of.get(socket);
    return connection ? (connection.address = forwarded ?? connection.peer) : '';
  }

  /** Whether the connection is open, and no request on it waits for its response or the rest of it. */
  isIdle(socket: Socket): boolean {
    const connection = this.#of.get(socket);
    return connection !== undefined && connection.last === undefined && socket.writable;
  }

  /** Call when a response is written: limits how much, and for how long, the client leaves it unread. */
  bound(response: ServerResponse): void {
    const { socket } = response;
    if (!socket || socket.destroyed || socket.writableLength === 0) return;
    const unread = [...this.#unread.add(socket)].filter(({ destroyed }) => !destroyed);
    if (unread.length > this.bounds.unread) unread.shift()!.destroy();
    const bytes = unread.reduce((sum, { writableLength }) => sum + writableLength, 0);
    // Closes only one connection: without its bytes, the sum is within the limit.
    if (bytes > this.bounds.unreadBytes)
      unread.sort((a, b) => b.writableLength - a.writableLength)[0]!.destroy();
    if (socket.destroyed) return;
    // Counts from the last byte that the client accepted: unread input does not restart the timeout.
    socket.setTimeout(this.bounds.stalledMs);
    queueMicrotask(() => socket.pause()); // as in #inTurn
    // Not on close: by then, other code may have paused the connection.
    response.once('finish', () => this.#of.get(socket)?.ahead === 0 && socket.resume());
    const late = setTimeout(() => socket.destroy(), this.bounds.unreadMs).unref();
    response.once('close', () => {
      clearTimeout(late);
      this.#unread.delete(socket);
      if (!this.isIdle(socket)) socket.setTimeout(0); // the next response is in progress: the timeout must not apply to it
    });
  }

  /** Call for a request with an incomplete body; returns the function to call when the body has arrived. */
  awaitBody({ socket }: IncomingMessage): () => void {
    if (this.#unfinished.size >= this.bounds.unfinished)
      for (const other of this.#leastMissed(this.#unfinished)) {
        this.#unfinished.delete(other);
        const response = this.#of.get(other)!.last;
        if (!response || response.headersSent) other.destroy();
        else response.writeHead(408, ['Connection', 'close', 'Content-Length', '0']).end();
      }
    if (this.#of.has(socket)) this.#unfinished.add(socket);
    return () => this.#unfinished.delete(socket);
  }

  #accept(socket: Socket): void {
    const peer = networkOf(parseAddress(socket.remoteAddress ?? ''));
    const others = this.#ofPeer.get(peer) ?? new Set();
    if (!this.#makeRoom(others)) {
      socket.destroy();
      return;
    }
    this.#ofPeer.set(peer, others.add(socket));
    this.#of.set(socket, { peer, address: peer, last: undefined, ahead: 0, order: this.#received });
    socket.once('close', () => this.#forget(socket));
  }

  /** Closes connections for a new one if necessary. @param ofPeer connections of the same peer @returns whether the server may accept it */
  #makeRoom(ofPeer: ReadonlySet<Socket>): boolean {
    let closed: readonly Socket[];
    if (ofPeer.size >= this.bounds.openOfPeer)
      closed = [...ofPeer].filter((socket) => !this.#of.get(socket)!.last).slice(0, 1);
    else if (this.#of.size >= this.bounds.open) closed = this.#leastMissed(this.#of.keys());
    else return true;
    for (const socket of closed) {
      socket.destroy();
      this.#forget(socket);
    }
    return closed.length > 0;
  }

  #forget(socket: Socket): void {
    const connection = this.#of.get(socket);
    if (!connection) return;
    this.#of.delete(socket);
    this.#unfinished.delete(socket);
    this.#unread.delete(socket);
    this.#ahead -= connection.ahead;
    connection.ahead = 0;
    const others = this.#ofPeer.get(connection.peer)!;
    others.delete(socket);
    if (others.size === 0) this.#ofPeer.delete(connection.peer);
  }

  /** Finds, among connections that are idle or still sending a request, the least recently used of the address with the most. */
  #leastMissed(sockets: Iterable<Socket>): Socket[] {
    const of = (socket: Socket) => this.#of.get(socket)!;
    const missed = [...sockets].filter((socket) => !of(socket).last?.req.complete);
    const byAddress = [...Map.groupBy(missed, (socket) => of(socket).address).values()];
    const [most = []] = byAddress.sort((one, other) => other.length - one.length);
    most.sort((one, other) => of(one).order - of(other).order);
    return most.slice(0, Math.ceil(most.length / BATCH));
  }

  #inTurn(response: ServerResponse, answer: () => void): void {
    const { socket } = response.req;
    const connection = this.#of.get(socket);
    if (!connection) return; // closed already
    const { last } = connection;
    connection.last = response;
    connection.order = ++this.#received;
    response.once('close', () => {
      if (connection.last === response) connection.last = undefined;
    });
    if (!last) return answer();
    if (this.#ahead >= this.bounds.ahead) {
      socket.destroy();
      return;
    }
    this.#ahead++;
    connection.ahead++;
    const begin = AsyncResource.bind(answer);
    // In a later event loop turn, so that other connections run first.
    last.once('close', () =>
      setImmediate(() => {
        if (connection.ahead === 0) return; // closed
        this.#ahead--;
        if (--connection.ahead === 0) socket.resume();
        begin();
      }),
    );
    // Node resumes the socket at the end of each message; this microtask pauses it again before Node reads.
    queueMicrotask(() => socket.pause());
  }
}
