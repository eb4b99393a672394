import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** A TCP connection to PostgreSQL that a test can stall or cut. */
export class TcpProxy {
  readonly #pairs = new Set<[Socket, Socket]>();
  #stalled = false;
  #refusing = false;
  #refused = 0;
  #delayMs = 0;

  private constructor(
    private readonly server: Server,
    private target: URL,
  ) {}

  /** @param target URL of the PostgreSQL to which it forwards */
  static async start(target: string): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, new URL(target));
    server.on('connection', (socket) => proxy.#pass(socket));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** The same database, through the proxy. */
  get url(): string {
    const url = new URL(this.target);
    url.port = String((this.server.address() as { port: number }).port);
    return url.toString();
  }

  /** Stops forwarding in both directions, without an error. */
  stall(): void {
    this.#stalled = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  resume(): void {
    this.#stalled = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  /** Delays all data by this time in ms, in each direction. */
  slow(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  /** Breaks every connection, and rejects new connections. */
  cut(): void {
    this.#refusing = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  /** Number of rejected connections. */
  get refused(): number {
    return this.#refused;
  }

  mend(): void {
    this.#refusing = false;
  }

  /** Sends new connections to another PostgreSQL; existing connections remain. */
  leadTo(target: string): void {
    this.target = new URL(target);
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Ends it at the end of the block that declares it by `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #pass(inside: Socket): void {
    if (this.#refusing) {
      this.#refused++;
      inside.destroy();
      return;
    }
    const outside = connect(Number(this.target.port), this.target.hostname);
    const pair: [Socket, Socket] = [inside, outside];
    this.#pairs.add(pair);
    for (const [from, to] of [pair, pair.toReversed() as [Socket, Socket]]) {
      let passed: Promise<unknown> = Promise.resolve();
      from.on('data', (bytes) => {
        const due = this.#delayMs === 0 ? undefined : setTimeout(this.#delayMs);
        passed = Promise.all([passed, due]).then(() => to.write(bytes)); // never overtakes earlier data
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#stalled) from.pause();
    }
  }
}
