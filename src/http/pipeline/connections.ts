import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionBounds {
  /** Open connections at a time. One more closes the one that has been idle for longest. */
  readonly open: number;
  /** Bytes of a connection that are parsed at a time: about forty of the smallest requests. */
  readonly sliceBytes: number;
  /** Slices that are parsed in one turn of the event loop, over all connections. */
  readonly slicesPerTurn: number;
  /** Bytes that a client may send ahead of the responses. */
  readonly aheadBytes: number;
  /** Parsed requests, over all connections, that wait for an earlier response on their connection. */
  readonly waiting: number;
  /** Responses that the system did not accept whole, because their clients do not read; one more disconnects the oldest. */
  readonly unread: number;
  /** How long a client may read nothing before it is disconnected, in ms. */
  readonly stalledMs: number;
  /** How long it may take to read the whole response, in ms: 200 KB at 10 KB/s take 20 s. */
  readonly unreadMs: number;
}

export const CONNECTION_BOUNDS: ConnectionBounds = {
  open: 4_096,
  sliceBytes: 2_048,
  slicesPerTurn: 16,
  aheadBytes: 262_144,
  waiting: 4_096,
  unread: 256,
  stalledMs: 10_000,
  unreadMs: 60_000,
};

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Connection {
  readonly socket: Socket;
  /** The request that is being answered. */
  underWay: Exchange | undefined;
  /** Called when a response was written; created once per connection. */
  readonly written: () => void;
  readonly closed: () => void;
  /** Parsed requests behind it, in order; each is begun in the asynchronous context in which it came, for whoever traces it. */
  readonly waiting: (Exchange & { readonly begin: () => void })[];
  /** What was received but not yet parsed; a final null means that the client sends no more. */
  held: (Buffer | null)[];
  heldBytes: number;
  /** Passes bytes to Node's parser: the socket's own `push`. */
  readonly parse: (bytes: Buffer | null) => boolean;
}

/**
 * Bounds the work that a client can cause through its socket, whatever it sends and however little it reads.
 *
 * Node parses up to 64 KB at once, which can be 1,500 requests, and answers them all before anybody else has a turn. Here a
 * connection is parsed in slices, a few per turn of the event loop; its requests are answered one after the other
 * (RFC 9112 §9.3.2), each only once the previous response has been handed to the system; and no more is parsed while one
 * waits. So no further responses are made for a client that does not read, and it is eventually disconnected.
 */
export class Connections {
  readonly #of = new Map<Socket, Connection>();
  readonly #idle = new Set<Connection>();
  /** Connections with slices left to parse in later turns, the next one first. */
  readonly #behind = new Set<Connection>();
  /** Connections whose last response was not accepted whole. */
  readonly #unread = new Set<Connection>();
  /** Begin the responses that are held back for now; undefined where there is no pause. */
  #paused: (() => void)[] | undefined;
  #accepted = 0;
  #open = 0;
  #waiting = 0;
  #heldBytes = 0;
  #parsing = false;
  /** Whether each response is the last one on its connection. */
  #ending = false;

  /**
   * @param answer begins to answer a request, once its turn on its connection has come
   * @param over is called when a response was written, or when there is nothing more to do for it, whatever became of it
   */
  constructor(
    server: Server,
    private readonly answer: Handle,
    private readonly bounds: ConnectionBounds = CONNECTION_BOUNDS,
    private readonly over: { readonly written: Handle; readonly closed: Handle } = NOBODY,
  ) {
    server.on('connection', (socket: Socket) => this.#accept(socket));
    server.on('request', (request, response) => {
      if (this.#ending) response.shouldKeepAlive = false;
      this.#take({ request, response });
    });
    // Node would answer these itself, regardless of turns.
    for (const event of ['checkContinue', 'checkExpectation'])
      server.on(event, (request, response) => server.emit('request', request, response));
  }

  /** For metrics and tests: all are 0 again when nobody is connected. */
  state(): Record<'open' | 'idle' | 'waiting' | 'behind' | 'unread' | 'heldBytes', number> {
    return {
      open: this.#open,
      idle: this.#idle.size,
      waiting: this.#waiting,
      behind: this.#behind.size,
      unread: this.#unread.size,
      heldBytes: this.#heldBytes,
    };
  }

  /**
   * Begins no response until the returned function is called; meanwhile, clients that wait for one cause no other work. Requests under
   * way go on.
   */
  pause(): () => void {
    const paused: (() => void)[] = (this.#paused ??= []);
    return () => {
      this.#paused = undefined;
      for (const begin of paused.splice(0)) begin();
    };
  }

  /** From now on every response, including those under way, says that it is the last one on its connection (RFC 9112 §9.6). */
  end(): void {
    this.#ending = true;
    for (const { underWay, waiting } of this.#of.values())
      for (const { response } of underWay ? [underWay, ...waiting] : waiting)
        response.shouldKeepAlive = false;
  }

  /** Closes connections on which nothing was ever requested: browsers open some in advance. */
  closeSilent(): void {
    for (const socket of this.#of.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  /** The number of connections accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  #accept(socket: Socket): void {
    this.#accepted++;
    if (this.#open >= this.bounds.open) {
      const [oldest] = this.#idle;
      (oldest?.socket ?? socket).destroy();
      if (!oldest) return;
    }
    const connection: Connection = {
      socket,
      underWay: undefined,
      written: () => this.#written(connection),
      closed: () => this.#end(connection),
      waiting: [],
      held: [],
      heldBytes: 0,
      parse: socket.push.bind(socket),
    };
    this.#of.set(socket, connection);
    this.#open++;
    this.#idle.add(connection);
    socket.once('close', () => this.#forget(connection));
    // Node's parser reads directly from the system, bypassing the stream, unless somebody listens to the stream.
    socket.on('data', ignore).removeListener('data', ignore);
    socket.push = (bytes: Buffer | null) => this.#receive(connection, bytes);
    const read = socket._read.bind(socket);
    socket._read = (size) => {
      if (connection.held.length === 0) read(size);
    };
  }

  #forget(connection: Connection): void {
    this.#of.delete(connection.socket);
    this.#open--;
    this.#waiting -= connection.waiting.length;
    connection.waiting.length = 0;
    connection.held = [];
    this.#hold(connection, -connection.heldBytes);
    this.#idle.delete(connection);
    this.#behind.delete(connection);
    this.#unread.delete(connection);
  }

  /** @returns whether more may be read, as Readable.push does */
  #receive(connection: Connection, bytes: Buffer | null): boolean {
    const { bounds } = this;
    const { held, socket } = connection;
    if (held.length === 0 && connection.waiting.length === 0) {
      if (bytes === null || bytes.length <= bounds.sliceBytes) return connection.parse(bytes);
    }
    held.push(bytes);
    this.#hold(connection, bytes?.length ?? 0);
    if (connection.heldBytes > bounds.aheadBytes) socket.destroy();
    else this.#parseLater(connection);
    return false;
  }

  #hold(connection: Connection, bytes: number): void {
    connection.heldBytes += bytes;
    this.#heldBytes += bytes;
  }

  #parseLater(connection: Connection): void {
    if (connection.held.length === 0 || connection.waiting.length > 0) return;
    this.#behind.add(connection);
    if (this.#parsing) return;
    this.#parsing = true;
    setImmediate(() => this.#parseSlices());
  }

  #parseSlices(): void {
    this.#parsing = false;
    let slices = 0;
    for (const connection of this.#behind) {
      if (slices++ === this.bounds.slicesPerTurn) break;
      this.#behind.delete(connection);
      // Node pauses where it has a body that nobody reads yet, or a response that the client does not read.
      if (connection.socket.isPaused()) connection.socket.once('resume', () => this.#parseLater(connection));
      else {
        this.#parseSlice(connection);
        this.#parseLater(connection); // behind the others
      }
    }
    const [next] = this.#behind;
    if (next) this.#parseLater(next);
  }

  #parseSlice(connection: Connection): void {
    const { held } = connection;
    const first = held[0]!;
    if (first === null || first.length <= this.bounds.sliceBytes) held.shift();
    else held[0] = first.subarray(this.bounds.sliceBytes);
    this.#hold(connection, -Math.min(first?.length ?? 0, this.bounds.sliceBytes));
    connection.parse(first === null ? null : first.subarray(0, this.bounds.sliceBytes));
  }

  #take(exchange: Exchange): void {
    const connection = this.#of.get(exchange.request.socket);
    if (!connection) return; // closed already
    if (!connection.underWay && connection.waiting.length === 0) {
      this.#begin(connection, exchange);
      return;
    }
    const begin = AsyncResource.bind(() => this.#begin(connection, exchange));
    connection.waiting.push({ ...exchange, begin });
    if (++this.#waiting > this.bounds.waiting) connection.socket.destroy();
  }

  #begin(connection: Connection, exchange: Exchange): void {
    const { request, response } = exchange;
    connection.underWay = exchange;
    this.#idle.delete(connection);
    response.on('prefinish', connection.written).on('close', connection.closed);
    if (this.#paused) this.#paused.push(AsyncResource.bind(() => this.answer(request, response)));
    else this.answer(request, response);
  }

  /** The response was written: to the system, as far as that accepted it. */
  #written(connection: Connection): void {
    const { socket, underWay } = connection;
    if (!underWay) return; // answered after the client had gone
    const { request, response } = underWay;
    this.over.written(request, response);
    if (socket.writableLength === 0 || socket.destroyed) return;
    const [oldest] = this.#unread;
    if (oldest && this.#unread.size >= this.bounds.unread) oldest.socket.destroy();
    this.#unread.add(connection);
    // Counts from the last byte that was accepted.
    socket.setTimeout(this.bounds.stalledMs);
    const late = setTimeout(() => socket.destroy(), this.bounds.unreadMs).unref();
    response.once('close', () => {
      clearTimeout(late);
      this.#unread.delete(connection);
      if (connection.waiting.length > 0) socket.setTimeout(0); // or it would count for the next response
    });
  }

  #end(connection: Connection): void {
    const { socket, underWay, waiting } = connection;
    if (!underWay) return;
    connection.underWay = undefined;
    this.over.closed(underWay.request, underWay.response);
    if (!socket.writable) return; // that was the last response
    if (waiting.length === 0) {
      this.#idle.add(connection);
      this.#parseLater(connection);
      return;
    }
    // In a later turn: the others have theirs in between.
    setImmediate(() => {
      const next = socket.writable ? waiting.shift() : undefined;
      if (!next) return;
      this.#waiting--;
      next.begin();
      this.#parseLater(connection);
    });
  }
}

function ignore(): void {}

const NOBODY = { written: ignore, closed: ignore };
