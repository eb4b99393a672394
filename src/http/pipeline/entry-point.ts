import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { Admission, type Caller } from '../admission/admission.js';
import type { Config } from '../../config/config.js';
import { isUnder, isUnderApi, PLATFORM_PREFIX } from './api-headers.js';
import { CONNECTION_BOUNDS, Connections } from '../admission/connections.js';
import { commentOf, endWorkFor, workFor } from '../../database/postgres/callers.js';
import { networkOf, parseAddress } from '../../values/network.js';
import { describeRequest, leaveSlot, type RequestContext } from './request-context.js';

/** Kinds of requests with separate admission, so that a flood of one kind takes no slots from the others. */
export const KINDS = ['api', 'platform', 'oauth', 'pages'] as const;
export type Kind = (typeof KINDS)[number];

/** Maximum number of admitted requests of each kind per process. */
export const MAX_CONCURRENT = 32;

/** Paths without admission: a health check must not fail because the server is busy. */
const HEALTH: readonly string[] = ['/livez', '/readyz'];

/** Sends a 503 in the format of the request's kind: problem, OAuth JSON or page. */
export type RejectBusy = (request: IncomingMessage, response: ServerResponse) => void;

/** One year (RFC 6797), without subdomains, which may have another operator or no certificate. */
const HSTS = 'max-age=31536000';

/** Receives all requests: checks `Host`, waits for admission, and passes the request to the application. */
export class EntryPoint {
  readonly connections: Connections;
  readonly admissions = Object.fromEntries(
    KINDS.map((kind) => [kind, new Admission(MAX_CONCURRENT)]),
  ) as Record<Kind, Admission>;
  /** Functions that send the 503 of each kind; the application sets them. */
  readonly refusals: Partial<Record<Kind, RejectBusy>> = {};
  /** Whether the server's public URL uses https. */
  readonly #https: boolean;
  /** Functions that start the delayed requests; undefined unless requests are paused. */
  #paused: (() => void)[] | undefined;
  #isEnding = false;

  constructor(
    server: Server,
    private readonly application: RequestListener,
    private readonly config: Config,
  ) {
    this.#https = config.publicUrl.startsWith('https:');
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      if (this.#paused) this.#paused.push(AsyncResource.bind(() => this.#receive(request, response)));
      else this.#receive(request, response);
    };
    // Behind a proxy, the connections per peer are unlimited, since all requests arrive on the proxy's connections.
    const bounds =
      config.trustProxy === 0 ? CONNECTION_BOUNDS : { ...CONNECTION_BOUNDS, openOfPeer: Infinity };
    this.connections = new Connections(server, answer, bounds);
  }

  /** Delays new requests until the returned function is called. Requests in progress continue. */
  pause(): () => void {
    const paused: (() => void)[] = (this.#paused ??= []);
    return () => {
      this.#paused = undefined;
      for (const begin of paused.splice(0)) begin();
    };
  }

  /** From now on, responses whose headers are not sent yet close their connections (RFC 9112 §9.6). */
  end(): void {
    this.#isEnding = true;
    for (const response of this.connections.lastResponses()) response.shouldKeepAlive = false;
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    if (response.closed) return; // the client disconnected during a pause
    describeRequest(request);
    const { context, headers, httpVersionMinor } = request;
    if (this.#isEnding) response.shouldKeepAlive = false;
    const kind = kindOf(context);
    const admission = kind && this.admissions[kind];
    // Releases the slot before the client has read the response: a client that does not read must not keep the slot.
    response.on('prefinish', () => {
      context.whenWritten?.(request, response);
      leaveSlot(context);
      this.connections.bound(response);
    });
    response.on('close', () => {
      context.isOver = true;
      leaveSlot(context);
      if (!response.writableEnded) endWorkFor(context.requester);
      for (const tell of context.whenOver) tell(request, response);
      if (admission && this.connections.isIdle(request.socket))
        admission.answered(request.socket, context.caller);
    });
    if (headers.expect !== undefined && httpVersionMinor >= 1) {
      if (headers.expect.toLowerCase() !== '100-continue') {
        response.writeHead(417, ['Content-Length', '0']).end();
        return;
      }
      response.writeContinue();
    }
    if (!hasOneHost(request)) {
      response.writeHead(400, ['Connection', 'close', 'Content-Length', '0']).end(); // RFC 9112 §3.2
      return;
    }
    context.caller = this.#callerOf(request);
    if (!admission) {
      this.#begin(request, response);
      return;
    }
    const begin = () => {
      context.slot = admission;
      if (context.isOver) leaveSlot(context);
      else this.#begin(request, response);
    };
    // Set only for a body, since this closure makes garbage collection of the request more expensive.
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      context.awaitBody = () => this.connections.awaitBody(request);
    admission.enter(context.caller, begin, () => {
      if (this.#https) response.gather('Strict-Transport-Security', HSTS);
      this.refusals[kind]!(request, response);
    });
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    response.gather('X-Request-Id', request.context.id);
    if (this.#https) response.gather('Strict-Transport-Security', HSTS);
    const { id, requester } = request.context;
    if (this.config.sqlRequestIds) requester.comment = commentOf(id);
    workFor(requester, () => this.application(request, response));
  }

  #callerOf({ headers, socket, context }: IncomingMessage): Caller {
    const key = headers['x-api-key'];
    context.address = this.#forwardedFor(headers['x-forwarded-for']);
    const forwarded = context.address === undefined ? undefined : networkOf(context.address);
    return {
      address: this.connections.addressOf(socket, forwarded),
      credential: typeof key === 'string' ? key : (headers.authorization ?? ''),
    };
  }

  /** Finds the sender in the entries from trusted proxies. Skips entries without an address (`unknown`, RFC 7239 §6.2; `_hidden`, §6.3). */
  #forwardedFor(header: string | string[] | undefined): string | undefined {
    const { trustProxy } = this.config;
    if (trustProxy === 0 || typeof header !== 'string') return undefined;
    return header
      .split(',')
      .slice(-trustProxy)
      .map(parseAddress)
      .find((address) => address !== undefined);
  }
}

/** @returns undefined for health checks */
function kindOf({ path, valid }: RequestContext): Kind | undefined {
  if (valid && isUnder(PLATFORM_PREFIX, path)) return 'platform';
  if (!valid || isUnderApi(path)) return 'api';
  if (path.startsWith('/oauth/') || path.startsWith('/.well-known/')) return 'oauth';
  return HEALTH.includes(path) ? undefined : 'pages';
}

/** HTTP/1.1 requires exactly one `Host` (RFC 9112 §3.2); a proxy and the server could choose different ones. */
function hasOneHost({ httpVersionMinor, rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts++;
  return hosts === 1 || (hosts === 0 && httpVersionMinor < 1);
}
