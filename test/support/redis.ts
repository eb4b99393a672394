import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { freePort } from './oauth.js';

/** A private Redis without persistence. */
export class RedisServer {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  static async start(): Promise<RedisServer> {
    const port = await freePort();
    const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'inherit'] });
    child.once('error', () => undefined); // reported below: apt-get install redis-server
    let output = '';
    for await (const chunk of child.stdout) {
      output += String(chunk);
      if (output.includes('Ready to accept connections')) break;
    }
    if (child.exitCode !== null || child.pid === undefined) throw new Error(`Redis did not start: ${output}`);
    return new RedisServer(child, `redis://127.0.0.1:${port}`);
  }

  /** Forgets everything, as a restart does. */
  async flush(): Promise<void> {
    const socket = connect(Number(new URL(this.url).port), '127.0.0.1');
    socket.write('FLUSHALL\r\n');
    await once(socket, 'data');
    socket.destroy();
  }

  async stop(): Promise<void> {
    this.child.kill();
    await once(this.child, 'exit');
  }
}
