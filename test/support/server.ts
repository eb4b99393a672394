import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { PROCESS } from './command-line.js';
import { freePort } from './oauth.js';
import { eventually } from './timing.js';

/** The program, run in its own process. */
export class ServerProcess {
  /** Its output to stdout: the log. */
  output = '';
  /** Its output to stderr. */
  errors = '';

  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  /** @param environment settings; PORT 0 means any free port @param root of the tree whose build is run */
  static async start(environment: Record<string, string>, root = process.cwd()): Promise<ServerProcess> {
    const port = Number(environment.PORT) || (await freePort());
    const child = spawn(process.execPath, ['bin/server.mjs'], {
      cwd: root,
      env: { ...PROCESS, ...environment, HOST: '127.0.0.1', PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const server = new ServerProcess(child, `http://127.0.0.1:${port}`);
    child.stdout.setEncoding('utf8').on('data', (text: string) => (server.output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (server.errors += text));
    await server.until(async () => {
      const answer = await fetch(`${server.url}/oauth/jwks`).catch(() => undefined);
      await answer?.arrayBuffer();
      return answer?.status === 200 || undefined;
    });
    return server;
  }

  /** Repeats a query until it has a result, while the server runs. */
  until<T>(ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
    const { child } = this;
    return eventually(() => {
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}: ${this.errors}`);
      return ask();
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Ends the process; {@link output} is complete afterwards. @returns the exit code; null if the signal ended it */
  async kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill(signal);
      await once(this.child, 'close');
    }
    return this.child.exitCode;
  }

  /** Ends it at the end of the block that declares it by `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill('SIGKILL');
  }
}

/** Reads a member's profile at a server, or writes a new bio. */
export function profileAt(url: string, key: string, bio?: string, more: Record<string, string> = {}) {
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json', ...more };
  const write = bio === undefined ? {} : { method: 'PUT', body: JSON.stringify({ bio }) };
  return fetch(`${url}/api/public/profile`, { headers, ...write });
}
