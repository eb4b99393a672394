import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from './oauth.js';
import { eventually } from './timing.js';

export const NGINX_FILE = 'deploy/nginx/public-user-api.conf';
export const CADDY_FILE = 'deploy/caddy/Caddyfile';

interface Ports {
  /** The proxy's TLS port, and the plain port that redirects to the TLS port. */
  readonly tls: number;
  readonly plain: number;
  /** Ports of the servers behind the proxy. */
  readonly servers: readonly number[];
  /** Time for which idle connections to a server are kept and a failed server is avoided; overrides the file, since SHUTDOWN_DELAY is also shorter in tests. */
  readonly keepaliveSeconds: number;
}

/** Starts a proxy of {@link PROXIES} with its file of deploy/, in which only names, addresses and paths are replaced. */
interface Program {
  /** Prepares the folder. @returns the command to run in it */
  prepare(folder: string, ports: Ports): readonly string[];
  /** The certificate that its clients must trust. */
  readonly certificate: string;
  /** Its log files in the folder. */
  readonly logs: readonly string[];
}

/** apt-get install nginx-light */
const NGINX: Program = {
  prepare(folder, { tls, plain, servers, keepaliveSeconds }) {
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', ...subject, '-keyout', join(folder, 'api.example.key'), '-out', join(folder, 'api.example.pem')], { stdio: 'pipe' }); // prettier-ignore
    let site = readFileSync(NGINX_FILE, 'utf8')
      .replaceAll(/^ *listen \[::\].*\n/gm, '')
      .replace('listen 443', `listen 127.0.0.1:${tls}`)
      .replace('listen 80', `listen 127.0.0.1:${plain}`)
      .replace('return 308 https://api.example', `return 308 https://localhost:${tls}`)
      .replaceAll('server_name api.example', 'server_name localhost')
      .replaceAll(/\/(etc\/ssl|etc\/ssl\/private|var\/log\/nginx)\/(?=[\w.-]+[ ;])/g, `${folder}/`)
      .replaceAll(/(keepalive_timeout |fail_timeout=)4s/g, `$1${keepaliveSeconds}s`);
    servers.forEach((at, i) => (site = site.replace(`10.0.0.${i + 1}:3000`, `127.0.0.1:${at}`)));
    writeFileSync(join(folder, 'site.conf'), site);
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/main.log;
${process.getuid!() === 0 ? 'user root;' : ''}
events { worker_connections 1024; }
http {
${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
include ${folder}/site.conf;
}`,
    );
    return ['/usr/sbin/nginx', '-p', folder, '-c', join(folder, 'nginx.conf')];
  },
  certificate: 'api.example.pem',
  logs: ['public-user-api.log', 'public-user-api.error.log', 'main.log'],
};

/** apt-get install caddy: for `localhost` Caddy creates the certificate itself. */
const CADDY: Program = {
  prepare(folder, { plain, keepaliveSeconds }) {
    // Shares nothing with the host: neither its trusted certificates nor Caddy's default ports.
    const own = `\tadmin off\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttp_port ${plain}\n`;
    writeFileSync(
      join(folder, 'Caddyfile'),
      readFileSync(CADDY_FILE, 'utf8')
        .replace(/^\{\n/m, `{\n${own}`)
        .replace('keepalive 4s', `keepalive ${keepaliveSeconds}s`),
    );
    return ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')];
  },
  certificate: 'data/caddy/pki/authorities/local/root.crt',
  logs: [],
};

export const PROXIES = { nginx: NGINX, Caddy: CADDY };

export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string | string[] | undefined>;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

export interface Asked {
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** The body is shorter than Content-Length: the rest is never sent, and the client waits for the response. */
  readonly unfinished?: boolean;
  /** Local address of the client. */
  readonly from?: string;
}

/** A real proxy with TLS, on its own ports, with the file of deploy/ that operators use. */
export class Proxy {
  /** The proxy's stdout and stderr. */
  #printed = '';
  /** The proxy's log after it stopped. */
  #finalLog: string | undefined;
  readonly #agents = new Map<string | undefined, Agent>();

  private constructor(
    private readonly child: ChildProcess,
    private readonly program: Program,
    private readonly folder: string,
    /** The proxy's https origin. */
    readonly url: string,
    /** The http origin that redirects to it. */
    readonly plainUrl: string,
  ) {}

  /** @param port its TLS port: PUBLIC_URL of the servers is `https://localhost:<port>` */
  static async start(
    name: keyof typeof PROXIES,
    port: number,
    servers: readonly number[],
    keepaliveSeconds = 4,
  ): Promise<Proxy> {
    const program = PROXIES[name];
    const folder = mkdtempSync(join(tmpdir(), 'pua-proxy-'));
    const plain = await freePort();
    const [command, ...parameters] = program.prepare(folder, {
      tls: port,
      plain,
      servers,
      keepaliveSeconds,
    });
    const url = `https://localhost:${port}`;
    const child = spawn(command!, parameters, {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        XDG_DATA_HOME: join(folder, 'data'),
        XDG_CONFIG_HOME: folder,
        PUBLIC_URL: url,
        SERVERS: servers.map((at) => `127.0.0.1:${at}`).join(' '),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const proxy = new Proxy(child, program, folder, url, `http://localhost:${plain}`);
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (printed: string) => (proxy.#printed += printed));
    child.once('error', (error) => (proxy.#printed += error.message));
    await eventually(async () => {
      if (child.exitCode !== null || child.pid === undefined)
        throw new Error(`${name} did not start: ${proxy.#printed}`);
      // Caddy creates the file before it writes the certificate, and an agent keeps what it read first.
      if (!existsSync(join(folder, program.certificate)) || !proxy.certificate.includes('-END CERTIFICATE-'))
        return undefined;
      return await proxy.ask('GET', '/livez').catch(() => undefined);
    });
    return proxy;
  }

  /** The certificate that clients must trust, in PEM. */
  get certificate(): string {
    return readFileSync(join(this.folder, this.program.certificate), 'utf8');
  }

  /** The proxy's output and its log files. */
  get log(): string {
    if (this.#finalLog !== undefined) return this.#finalLog;
    const files = this.program.logs.map((name) => join(this.folder, name)).filter((path) => existsSync(path));
    return [this.#printed, ...files.map((path) => readFileSync(path, 'utf8'))].join('\n');
  }

  /** Sends one request on a kept-alive connection, with its path unchanged. */
  ask(
    method: string,
    path: string,
    { headers = {}, body = '', unfinished, from }: Asked = {},
  ): Promise<Answer> {
    if (!this.#agents.has(from)) this.#agents.set(from, new Agent({ keepAlive: true, ca: this.certificate }));
    return new Promise((resolve, reject) => {
      const { hostname, port } = new URL(this.url);
      const agent = unfinished ? new Agent({ ca: this.certificate }) : this.#agents.get(from)!;
      const sent = request(
        { agent, hostname, port, path, method, headers, family: 4, localAddress: from },
        (answer) => {
          const { statusCode, headers: received, rawHeaders } = answer;
          text(answer).then((got) => {
            if (unfinished) sent.destroy();
            resolve({ status: statusCode!, headers: received, rawHeaders, body: got });
          }, reject);
        },
      );
      sent.on('error', reject);
      if (unfinished) sent.write(body);
      else sent.end(body);
    });
  }

  /** Stops the proxy; its log is then complete. */
  async stop(): Promise<void> {
    for (const agent of this.#agents.values()) agent.destroy();
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGTERM');
      await once(this.child, 'close');
    }
    this.#finalLog = this.log;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Checks the files of deploy/ like an operator. @returns the programs' reports */
export function examine(): { nginx: string; caddy: string; formatted: string } {
  const folder = mkdtempSync(join(tmpdir(), 'pua-proxy-'));
  try {
    mkdirSync(join(folder, 'data'));
    // Caddy checks the servers' health as soon as it has read the file.
    const SERVERS = '127.0.0.1:1 127.0.0.1:2';
    const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: join(folder, 'data'), SERVERS };
    const said = (command: readonly string[]) =>
      execFileSync('sh', ['-c', '"$@" 2>&1', 'sh', ...command], { env, encoding: 'utf8' });
    const nginx = NGINX.prepare(folder, { tls: 1, plain: 2, servers: [3, 4], keepaliveSeconds: 4 });
    return {
      nginx: said([...nginx, '-t']),
      caddy: said(['caddy', 'validate', '--adapter', 'caddyfile', '--config', CADDY_FILE]),
      formatted: said(['caddy', 'fmt', CADDY_FILE]),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
