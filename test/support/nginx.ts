import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Real nginx with the configuration of docs/operations.md, on a port of its own (apt-get install nginx-light). */
export class Nginx {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    readonly url: string,
  ) {}

  /** @param keepaliveSeconds in place of the documented ones, as SHUTDOWN_DELAY is shorter here, too */
  static async start(port: number, servers: readonly number[], keepaliveSeconds: number): Promise<Nginx> {
    const folder = mkdtempSync(join(tmpdir(), 'pua-nginx-'));
    let site = /```nginx\n([^]*?)```/.exec(readFileSync('docs/operations.md', 'utf8'))![1]!;
    servers.forEach((at, i) => (site = site.replace(`10.0.0.${i + 1}:3000`, `127.0.0.1:${at}`)));
    site = site
      .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
      .replace(/ *ssl_certificate.*\n/g, '')
      .replace('keepalive_timeout 4s', `keepalive_timeout ${keepaliveSeconds}s`);
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
${process.getuid!() === 0 ? 'user root;' : ''}
events { worker_connections 512; }
http {
access_log off;
${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
${site}}`,
    );
    const child = spawn('/usr/sbin/nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.once('error', () => undefined); // told below
    let errors = '';
    child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
    const url = `http://127.0.0.1:${port}`;
    for (let attempt = 0; attempt < 200; attempt++) {
      const answers = await fetch(url).then(
        () => true,
        () => false,
      );
      if (answers) return new Nginx(child, folder, url);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`nginx did not start: ${errors}`);
  }

  /** What it could not pass on. */
  get errors(): string {
    return readFileSync(join(this.folder, 'error.log'), 'utf8');
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    await once(this.child, 'exit');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
