import { createServer, type RequestListener } from 'node:http';
import { ExpressAdapter } from '@nestjs/platform-express/adapters/express-adapter.js'; // the package's index also loads code for uploads
import express, { type Request, type Response } from 'express';
import { computeEtag, JsonResponse, noneMatch, UnchangingDocument } from '../output/responses.js';
import type { Config } from '../../config/config.js';
import { EntryPoint } from './entry-point.js';
import { makeMessageClasses } from './messages.js';

/** Express with exact paths. Sends objects as JSON: on GET and HEAD with an ETag, or 304 if the caller already has this version. */
export class ApiAdapter extends ExpressAdapter {
  entryPoint: EntryPoint;

  constructor(private readonly config: Config) {
    const app = express();
    app.enable('case sensitive routing');
    app.enable('strict routing');
    app.disable('x-powered-by');
    app.disable('etag');
    app.set('query parser', false);
    app.set('env', 'production'); // in other environments, Express shows stack traces
    super(app);
  }

  /** Creates Node's HTTP server. It checks the limits against slow clients ({@link Config.requestDeadlines}) every second. */
  override initHttpServer(): void {
    const { requestDeadlines } = this.config;
    const server = createServer({
      ...makeMessageClasses(this.getInstance()),
      connectionsCheckingInterval: 1_000,
      headersTimeout: requestDeadlines.headers,
      requestTimeout: requestDeadlines.whole,
      keepAliveTimeout: 65_000,
      highWaterMark: 65_536, // with a lower value, Node 20 would stop reading in the middle of the longest form
      requireHostHeader: false, // the entry point checks it: Node would respond to all such requests of a connection in one event loop turn
    });
    server.maxRequestsPerSocket = 100_000;
    this.entryPoint = new EntryPoint(server, this.getInstance() as RequestListener, this.config);
    this.httpServer = server;
  }

  override reply(response: Response, body: unknown, statusCode?: number): void {
    if (response.headersSent) return; // the handler has responded, or the deadline passed first
    if (body instanceof UnchangingDocument) {
      void body.send(response.req as Request, response);
      return;
    }
    if (!(body instanceof JsonResponse) && (typeof body !== 'object' || body === null)) {
      super.reply(response, body, statusCode);
      return;
    }
    const request = response.req as Request;
    if (statusCode !== undefined) response.statusCode = statusCode;
    const { json: text, headers } =
      body instanceof JsonResponse ? body : new JsonResponse(JSON.stringify(body));
    const json = typeof text === 'string' ? Buffer.from(text) : text; // encodes once, for validator, length and socket
    for (const name in headers) response.gather(name, headers[name]!);
    if (request.method === 'GET' || request.method === 'HEAD') {
      let etag = headers.ETag;
      if (etag === undefined) response.gather('ETag', (etag = computeEtag(json)));
      if (noneMatch(request.headers['if-none-match'], etag)) {
        response.writeHead(304).end();
        return;
      }
    }
    response.gather('Content-Type', 'application/json; charset=utf-8');
    response.gather('Content-Length', String(json.length));
    response.writeHead(response.statusCode).end(request.method === 'HEAD' ? undefined : json);
  }
}
