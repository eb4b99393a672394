import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf, parseAddress } from '../../values/network.js';

/** What clients may hold at a time, over all connections. */
export const CONNECTION_BOUNDS = {
  /** Open connections. One more closes others that are idle, or still send their requests. */
  open: 4_096,
  /** Those of one network address. One more closes an idle one of the same address, or is closed before anything is read from it. */
  openOfPeer: 1_024,
  /** Requests whose bodies are still to come; one more closes others. */
  unfinished: 1_024,
  /** Requests that clients sent ahead of the response to an earlier one. */
  ahead: 4_096,
  /** Responses that the system did not accept whole, because their clients do not read; one more disconnects the oldest. */
  unread: 256,
  /** Bytes of all those responses together; where there are more, the one with most of them is disconnected. */
  unreadBytes: 64 * 1024 * 1024,
  /** How long a client may read nothing before it is disconnected, in ms. */
  stalledMs: 10_000,
  /** How long it may take to read the whole response, in ms: 200 KB at 10 KB/s take 20 s. */
  unreadMs: 60_000,
};
export type ConnectionBounds = Readonly<typeof CONNECTION_BOUNDS>;

/** Connections are closed in batches, since choosing them takes time in proportion to all: one in so many of the address's. */
const BATCH = 16;

interface Connection {
  /** The network address at its other end. */
  readonly peer: string;
  /** The address of who sent the last request: not the peer's, if that is a proxy. */
  address: string;
  /** The response to the last request that was received; undefined while none is under way, so that nothing of it is kept. */
  last: ServerResponse | undefined;
  /** Requests that wait for the response to an earlier one. */
  ahead: number;
  /** Orders connections by when their last request came. */
  order: number;
}

/**
 * Bounds what a client can hold through its socket, whatever it sends and however little it reads. Requests of one connection are
 * answered one after the other (RFC 9112 §9.3.2), each only once the previous response has been handed to the system, and while one
 * waits nothing more is read. So no further responses are made for a client that does not read, and it is eventually disconnected.
 */
export class Connections {
  readonly #of = new Map<Socket, Connection>();
  /** Those of each peer, the oldest first. */
  readonly #ofPeer = new Map<string, Set<Socket>>();
  /** Sockets on which a body is still to come. */
  readonly #unfinished = new Set<Socket>();
  /** Sockets whose last response was not accepted whole. */
  readonly #unread = new Set<Socket>();
  #ahead = 0;
  #received = 0;

  /** @param answer begins to answer a request, once its turn on its connection has come */
  constructor(
    server: Server,
    answer: (request: IncomingMessage, response: ServerResponse) => void,
    private readonly bounds: ConnectionBounds = CONNECTION_BOUNDS,
  ) {
    server.on('connection', (socket: Socket) => this.#accept(socket));
    server.on('request', (request, response) => this.#inTurn(response, () => answer(request, response)));
    // Node would answer these itself, regardless of turns.
    for (const event of ['checkContinue', 'checkExpectation'])
      server.on(event, (request, response) => server.emit('request', request, response));
  }

  /** For metrics and tests: all are 0 again when nobody is connected. */
  state(): Record<'open' | 'idle' | 'unfinished' | 'ahead' | 'unread', number> {
    const idle = [...this.#of.values()].filter(({ last }) => !last).length;
    const { size: unfinished } = this.#unfinished;
    return { open: this.#of.size, idle, unfinished, ahead: this.#ahead, unread: this.#unread.size };
  }

  /** The last responses of all connections, of which some may be under way. */
  *lastResponses(): Iterable<ServerResponse> {
    for (const { last } of this.#of.values()) if (last) yield last;
  }

  /** Closes connections on which nothing was ever requested: browsers open some in advance. */
  closeSilent(): void {
    for (const socket of this.#of.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  /** @param forwarded who sent the request, as a proxy says @returns the address of its sender */
  addressOf(socket: Socket, forwarded: string | undefined): string {
    const connection = this.#of.get(socket);
    return connection ? (connection.address = forwarded ?? connection.peer) : '';
  }

  /** Whether the client has its last response, and has sent nothing since. */
  isIdle(socket: Socket): boolean {
    const connection = this.#of.get(socket);
    return connection !== undefined && connection.last === undefined && socket.writable;
  }

  /** To be called when a response has been handed to the system: what the client does not read of it is bounded from now on. */
  bound(response: ServerResponse): void {
    const { socket } = response;
    if (!socket || socket.destroyed || socket.writableLength === 0) return;
    const unread = [...this.#unread.add(socket)].filter(({ destroyed }) => !destroyed);
    if (unread.length > this.bounds.unread) unread.shift()!.destroy();
    const bytes = unread.reduce((sum, { writableLength }) => sum + writableLength, 0);
    // One is enough: what was unread before was within the bound.
    if (bytes > this.bounds.unreadBytes)
      unread.sort((a, b) => b.writableLength - a.writableLength)[0]!.destroy();
    if (socket.destroyed) return;
    // Counts from the last byte that was accepted: what the client sends meanwhile is not read, so it does not count.
    socket.setTimeout(this.bounds.stalledMs);
    queueMicrotask(() => socket.pause()); // as in #inTurn
    // Not when it closes: then others may leave the connection unread.
    response.once('finish', () => this.#of.get(socket)?.ahead === 0 && socket.resume());
    const late = setTimeout(() => socket.destroy(), this.bounds.unreadMs).unref();
    response.once('close', () => {
      clearTimeout(late);
      this.#unread.delete(socket);
      if (!this.isIdle(socket)) socket.setTimeout(0); // or it would count for the next response
    });
  }

  /** To be called when a request's body is still to come; returns what is to be called when it has arrived. */
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

  /** @param ofPeer the connections of the one that wants another @returns whether it may have one */
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

  /** Among those that are idle or still send their request: of the address that has most, those that have been so for longest. */
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
    // In a later turn than the response before: the others have theirs in between.
    last.once('close', () =>
      setImmediate(() => {
        if (connection.ahead === 0) return; // closed
        this.#ahead--;
        if (--connection.ahead === 0) socket.resume();
        begin();
      }),
    );
    // Node itself reads on at the end of each message; a microtask comes after that, and before anything more is read.
    queueMicrotask(() => socket.pause());
  }
}
