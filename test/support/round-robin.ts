import { createServer, request, type Server } from 'node:http';
import { pipeline } from 'node:stream';
import { freePort } from './oauth.js';

/** A load balancer that sends each request to the next instance, so consecutive requests of a flow reach different instances. */
export class RoundRobin {
  /** Origins of the instances. */
  targets: readonly string[] = [];
  /** Headers that it adds to each request. */
  headers: Readonly<Record<string, string>> = {};
  #next = 0;

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(): Promise<RoundRobin> {
    // Keeps client connections open, but no instance connections, so that no request reuses a closing connection.
    const server = createServer({ keepAliveTimeout: 60_000 });
    const balancer = new RoundRobin(server, await freePort());
    server.on('request', (asked, answer) => {
      const { hostname, port } = new URL(balancer.next());
      const { method, url } = asked;
      const headers = { ...asked.headers, ...balancer.headers };
      const passed = request({ agent: false, hostname, port, method, path: url, headers }, (got) => {
        answer.writeHead(got.statusCode!, got.rawHeaders);
        pipeline(got, answer, () => undefined);
      });
      passed.on('error', () => answer.destroy());
      pipeline(asked, passed, () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(balancer.port, '127.0.0.1', resolve));
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Selects the next instance. */
  next(): string {
    return this.targets[this.#next++ % this.targets.length]!;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
