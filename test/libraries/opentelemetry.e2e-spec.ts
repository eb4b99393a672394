import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as client from 'openid-client';
import { startPostgres } from '../../bin/postgres.mjs';
import { randomBytes } from '../../src/crypto/random.js';
import { DEMO_CLIENT } from '../../src/clients/own-clients.js';
import { DEMO_PASSWORD, DEMO_USERNAMES, FIRST_ID } from '../../src/operations/demo/demo.js';
import { Browser, freePort } from '../support/oauth.js';
import { installPackages } from '../support/packages.js';
import { ServerProcess } from '../support/server.js';
import { eventually } from '../support/timing.js';

/*
 * The packages of deploy/opentelemetry in a running server, and the traces that arrive at an OTLP collector.
 */

const SERVER = 2;
const CLIENT = 3;

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly { key: string; value: { stringValue?: string } & Record<string, unknown> }[];
  /** The instrumentation library that created the span. */
  readonly scope: string;
}

/** Accepts traces as a collector does (OTLP/HTTP, JSON). */
class Collector {
  /** Everything received, unchanged. */
  received = '';
  readonly spans: Span[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      void text(request).then((body) => {
        this.received += body;
        const { resourceSpans = [] } = JSON.parse(body) as {
          resourceSpans?: { scopeSpans: { scope: { name: string }; spans: Omit<Span, 'scope'>[] }[] }[];
        };
        for (const { scopeSpans } of resourceSpans)
          for (const { scope, spans } of scopeSpans)
            this.spans.push(...spans.map((span) => ({ ...span, scope: scope.name })));
        response.setHeader('Content-Type', 'application/json').end('{}');
      });
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve) => void collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The span of a request of this trace, and all other spans of the trace, once the request's span has arrived. */
  trace(traceId: string): Promise<{ request: Span; others: Span[] }> {
    return eventually(() => {
      const all = this.spans.filter((span) => span.traceId === traceId);
      const request = all.find(({ kind }) => kind === SERVER);
      return request && { request, others: all.filter((span) => span !== request) };
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const attributesOf = ({ attributes }: Span): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
/** The SQL text of the span; empty for a span without a statement. */
const statementOf = (span: Span) =>
  span.attributes.find(({ key }) => key === 'db.query.text')?.value.stringValue ?? '';
const newTrace = () => {
  const [traceId, caller] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, caller, traceparent: `00-${traceId}-${caller}-01` };
};

(process.env.LIBRARIES ? describe : describe.skip)('OpenTelemetry', () => {
  let packages: string;
  let collector: Collector;
  beforeAll(async () => {
    packages = mkdtempSync(join(tmpdir(), 'pua-opentelemetry-'));
    cpSync('deploy/opentelemetry', packages, { recursive: true });
    await installPackages(packages);
    collector = await Collector.start();
  });
  afterAll(() => {
    collector.close();
    rmSync(packages, { recursive: true, force: true });
  });

  describe.each(['PostgreSQL', 'the embedded database'])('traces of a server with %s', (name) => {
    const onPostgres = name === 'PostgreSQL';
    const folder = mkdtempSync(join(tmpdir(), 'pua-traces-'));
    const dataDir = mkdtempSync(join(tmpdir(), 'pua-traces-'));
    let cluster: Awaited<ReturnType<typeof startPostgres>> | undefined;
    let server: ServerProcess;
    let key: string;
    beforeAll(async () => {
      if (onPostgres) cluster = await startPostgres(folder, { fsync: 'off' });
      const port = await freePort();
      server = await ServerProcess.start({
        NODE_ENV: 'development',
        PORT: String(port),
        PUBLIC_URL: `http://127.0.0.1:${port}`,
        DATA_DIR: dataDir,
        LOG_FORMAT: 'json',
        ...(cluster ? { DATABASE_URL: cluster.url } : {}),
        NODE_OPTIONS: `--import=${join(packages, 'register.mjs')}`,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_BSP_SCHEDULE_DELAY: '100',
      });
      key = readFileSync(join(dataDir, 'test-key'), 'utf8').trim();
    });
    afterAll(async () => {
      await server.kill();
      await cluster?.stop();
      for (const made of [folder, dataDir]) rmSync(made, { recursive: true, force: true });
    });

    const call = async (path: string, init: RequestInit & { headers?: object } = {}) => {
      const { traceId, caller, traceparent } = newTrace();
      const response = await fetch(server.url + path, {
        ...init,
        headers: { traceparent, ...(init.headers ?? { 'X-API-Key': key }) },
      });
      await response.arrayBuffer();
      return { response, caller, ...(await collector.trace(traceId)) };
    };

    it('continue the caller’s trace, and contain the request, its route and its SQL, without values', async () => {
      // Pipelined reads use the pool until their connections are open.
      const { response, caller, request, others } = await eventually(async () => {
        const trace = await call('/api/public/profile');
        const piped = trace.others.some(({ scope }) => scope === 'public-user-api');
        return piped || !onPostgres ? trace : undefined;
      });
      expect(request).toMatchObject({ name: 'GET /api/public/profile', parentSpanId: caller });
      expect(attributesOf(request)).toMatchObject({
        'http.route': '/api/public/profile',
        'http.request.method': 'GET',
        'http.response.status_code': 200,
      });
      expect(JSON.stringify(request)).toContain(response.headers.get('x-request-id'));
      // The span contains only these attributes of the caller and the request.
      expect(Object.keys(attributesOf(request)).toSorted()).toEqual([
        'http.request.method',
        'http.response.header.x-request-id',
        'http.response.status_code',
        'http.route',
        'network.protocol.version',
        'url.scheme',
      ]);
      const profile = others.find((span) => /FROM users/.test(statementOf(span)))!;
      expect(profile).toMatchObject({ kind: CLIENT, parentSpanId: request.spanId });
      // The embedded database has one session: its statements have no names.
      expect(profile.name).toBe(`pg.query:${onPostgres ? 'read-profile' : 'SELECT'} postgres`);
      expect(attributesOf(profile)).toMatchObject({
        'db.system.name': 'postgresql',
        'db.namespace': 'postgres',
        'db.query.text': expect.stringContaining('$1'),
      });
      expect(JSON.stringify(others)).not.toContain(String(FIRST_ID));
    });

    it('contain the UPDATE of a PUT request, and no span without a parent', async () => {
      const { response, request, others } = await call('/api/public/profile', {
        method: 'PUT',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ bio: 'a bio that nobody traces' }),
      });
      expect([response.status, request.name]).toEqual([200, 'PUT /api/public/profile']);
      expect(others.map(statementOf)).toEqual(
        expect.arrayContaining([expect.stringMatching(/UPDATE users/)]),
      );
      expect(others.filter(({ parentSpanId }) => parentSpanId === undefined)).toEqual([]);
      expect(collector.received).not.toContain('a bio that nobody traces');
    });

    it('contain the SQL of their own request when requests are pipelined on one connection', async () => {
      const traces = Array.from({ length: 5 }, newTrace);
      const { port } = new URL(server.url);
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(
        traces
          .map(
            ({ traceparent }, i) =>
              `GET /api/public/events?q=pipelined${i} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\ntraceparent: ${traceparent}\r\n` +
              `${i === traces.length - 1 ? 'Connection: close\r\n' : ''}\r\n`,
          )
          .join(''),
      );
      expect((await text(socket)).match(/HTTP\/1\.1 200/g)).toHaveLength(traces.length);
      for (const { traceId } of traces) {
        const { request, others } = await collector.trace(traceId);
        const lists = others.filter((span) => /participants/.test(statementOf(span)));
        expect(lists.length).toBeGreaterThan(0);
        expect(lists.filter(({ parentSpanId }) => parentSpanId !== request.spanId)).toEqual([]);
      }
    });

    it('have their ids in the log if the server begins the trace', async () => {
      const id = `log-${randomBytes(4).toString('hex')}`;
      const response = await fetch(`${server.url}/api/public/me`, {
        headers: { 'X-API-Key': key, 'X-Request-Id': id },
      });
      await response.arrayBuffer();
      const request = await eventually(() =>
        collector.spans.find((span) => span.kind === SERVER && JSON.stringify(span).includes(id)),
      );
      const line = await eventually(() =>
        server.output
          .split('\n')
          .slice(0, -1)
          .find((text) => text.includes(id)),
      );
      expect(JSON.parse(line)).toMatchObject({ request_id: id, trace_id: request.traceId });
    });

    it('contain no key, token, code or password, and no statements outside of requests', async () => {
      const browser = new Browser(server.url, server.url);
      const [verifier, state] = [client.randomPKCECodeVerifier(), client.randomState()];
      const redirectUri = `${server.url}/demo/callback`;
      const url = new URL('/oauth/authorize', server.url);
      url.search = new URLSearchParams({
        client_id: DEMO_CLIENT,
        response_type: 'code',
        redirect_uri: redirectUri,
        scope: 'openid profile:read offline_access',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
      }).toString();
      const back = await browser.authorize(url, { username: DEMO_USERNAMES[0]!, password: DEMO_PASSWORD });
      const code = back.searchParams.get('code')!;
      const redeem = () =>
        fetch(`${server.url}/oauth/token`, {
          method: 'POST',
          body: new URLSearchParams({
            grant_type: 'authorization_code',
            client_id: DEMO_CLIENT,
            code,
            code_verifier: verifier,
            redirect_uri: redirectUri,
          }),
        });
      const tokens = (await (await redeem()).json()) as Record<string, string>;
      const calls = [
        call('/api/public/profile', {
          headers: { Authorization: `Bearer ${tokens.access_token}` },
        }),
        call(`/api/public/me?api_key=${key}&access_token=${tokens.access_token}`),
        call(`/calendar/${tokens.access_token}.ics`),
        call(`/${key}`, { headers: { 'User-Agent': key, Referer: `https://x.example/?${code}` } }),
      ].map(async (traced) => (await traced).response.status);
      expect(await Promise.all(calls)).toEqual([200, 400, 404, 404]);
      expect((await redeem()).status).toBe(400); // already used
      await call('/api/public/me');
      const cookies = [...browser.cookies.values()]
        .map(({ value }) => value)
        .filter((value) => value.length > 8);
      expect(cookies.length).toBeGreaterThan(0);
      const secrets = [key, key.split('_')[3]!, code, verifier, DEMO_PASSWORD, ...cookies];
      for (const token of ['access_token', 'refresh_token', 'id_token'])
        if (tokens[token]) secrets.push(tokens[token]);
      expect(secrets.length).toBeGreaterThanOrEqual(8);
      for (const secret of secrets) expect(collector.received).not.toContain(secret);
      // Statements outside of requests, which run many times per second, create no spans.
      expect(
        collector.spans.filter((span) => span.kind !== SERVER && span.parentSpanId === undefined),
      ).toEqual([]);
    });
  });
});
