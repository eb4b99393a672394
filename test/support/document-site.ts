import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { PublicHttps } from '../../src/runtime/public-https.js';

/** Responds to a request for a document. */
type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Serves client documents by https, with a certificate that this process trusts. Requires openssl, which `npm test` does not. */
export class DocumentSite {
  /** Number of connections so far. */
  connections = 0;

  private constructor(
    private readonly server: Server,
    private readonly trusted: readonly string[],
    public answer: Answer,
  ) {}

  static async start(answer: Answer): Promise<DocumentSite> {
    const folder = mkdtempSync(join(tmpdir(), 'pua-tls-'));
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const what = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost';
    const names = 'subjectAltName=DNS:localhost,DNS:*.agents.localhost,IP:127.0.0.1';
    execFileSync('openssl', ['req', ...what.split(' '), '-addext', names, '-keyout', key, '-out', cert], {
      stdio: 'ignore',
    });
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) });
    const trusted = getCACertificates('default');
    const site = new DocumentSite(server, trusted, answer);
    server.on('request', (request, response) => site.answer(request, response));
    server.on('connection', () => site.connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    setDefaultCACertificates([...trusted, readFileSync(cert, 'utf8')]);
    rmSync(folder, { recursive: true });
    return site;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** The site's origin. */
  get at(): string {
    return `https://localhost:${this.port}`;
  }

  close(): void {
    setDefaultCACertificates(this.trusted);
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Lets a server read documents from this host, without its limit of 2.5 seconds: a busy host may need longer. */
export function allowDocuments(https: PublicHttps): void {
  https.isAllowed = () => true;
  https.timeLimit = () => new AbortController().signal;
}

/** Sends a document. */
export function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}
