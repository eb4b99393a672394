import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Admission } from './admission.js';
import type { Caller, Capacity } from './admission.js';
import { isUnder, isUnderApi, PLATFORM_PREFIX } from './api-headers.js';
import { CONNECTION_BOUNDS, Connections } from './connections.js';
import { endWorkFor, workFor } from '../../database/callers.js';
import { inRequest } from '../../database/request-comments.js';
import { networkOf, parseAddress } from '../../values/network.js';
import { describeRequest, leavePlace } from './request-context.js';
import type { RequestContext } from './request-context.js';

/**
 * Kinds of requests that are admitted separately, so that a flood of one leaves the others alone: the API, the platform's backend, the
 * authorization server, and the pages with everything else.
 */
export type Kind = 'api' | 'platform' | 'oauth' | 'pages';

/** A process that answers 600 requests a second answers 64 in 110 ms; a token request takes twice as much work. */
export const CAPACITIES: Readonly<Record<Kind, Capacity>> = {
  // One caller's share of a burst, 2/3, is as much as the two pipelined connections take.
  api: { steady: 64, burst: 192 },
  // Feeds write for seconds, one or two at a time: the others wait.
  platform: { steady: 32, burst: 64 },
  oauth: { steady: 32, burst: 256 },
  // Sign-ins mostly wait: half a second each, whatever the password.
  pages: { steady: 128, burst: 256 },
};

/** Always answered: a check of whether the process is alive must not be told that it is busy. Both cost next to nothing. */
const HEALTH: readonly string[] = ['/livez', '/readyz'];

/** Answers 503, in the form of its kind, at a fraction of the cost of a response. */
export type Refuse = (request: IncomingMessage, response: ServerResponse) => void;

/** How much of a body is waited for: no form is longer, and a longer body is refused when it is read. */
const AWAITED_BODY_BYTES = 16_384;

/** RFC 6797. Without subdomains: they may be somebody else's, or have no certificate. */
const HSTS = 'max-age=31536000';

export interface FrontDoorOptions {
  /** Whether callers use https, up to whatever terminates TLS in front of this server. */
  readonly https: boolean;
  /** The number of proxies in front whose X-Forwarded-For is trusted. */
  readonly trustProxy: number;
  /** Whether statements bear the id of their request. */
  readonly sqlRequestIds: boolean;
}

/** Everything that happens to a request before the application sees it. */
export class FrontDoor {
  readonly connections: Connections;
  readonly admissions: Readonly<Record<Kind, Admission>> = {
    api: new Admission(CAPACITIES.api),
    platform: new Admission(CAPACITIES.platform),
    oauth: new Admission(CAPACITIES.oauth),
    pages: new Admission(CAPACITIES.pages),
  };
  /** How each kind is refused; without a body until the application sets it. */
  readonly refusals: Record<Kind, Refuse> = {
    api: refuseBarely,
    platform: refuseBarely,
    oauth: refuseBarely,
    pages: refuseBarely,
  };
  readonly #application: RequestListener;
  readonly #options: FrontDoorOptions;
  readonly #addresses = new WeakMap<Socket, string>();

  constructor(server: Server, application: RequestListener, options: FrontDoorOptions) {
    this.#application = application;
    this.#options = options;
    this.connections = new Connections(
      server,
      (request, response) => this.#receive(request, response),
      CONNECTION_BOUNDS,
      {
        // Not the end of sending: a client that does not read the response keeps no place.
        written: (request, response) => {
          request.context.whenWritten?.(request, response);
          leavePlace(request.context);
        },
        closed: (request, response) => this.#end(request, response),
      },
    );
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    describeRequest(request);
    const { expect } = request.headers;
    if (expect !== undefined && request.httpVersionMinor >= 1) {
      if (expect.toLowerCase() !== '100-continue') {
        response.writeHead(417, ['Content-Length', '0']).end();
        return;
      }
      response.writeContinue();
    }
    if (request.httpVersionMinor >= 1 && request.headers.host === undefined) {
      response.writeHead(400, ['Connection', 'close', 'Content-Length', '0']).end(); // RFC 9112 §3.2
      return;
    }
    const kind = kindOf(request.context);
    // A request that needs no credential takes its place only when its body has arrived: otherwise a body that never ends would keep it.
    if (kind === 'api' || kind === 'platform' || !hasBody(request)) this.#admit(kind, request, response);
    else whenBodyArrived(request, () => this.#admit(kind, request, response));
  }

  #admit(kind: Kind | undefined, request: IncomingMessage, response: ServerResponse): void {
    if (kind !== undefined) {
      const admission = this.admissions[kind];
      const place = admission.enter(this.#callerOf(request));
      if (typeof place === 'string') {
        if (this.#options.https) response.gather('Strict-Transport-Security', HSTS);
        this.refusals[kind](request, response);
        return;
      }
      request.context.place = place;
    }
    response.gather('X-Request-Id', request.context.id);
    if (this.#options.https) response.gather('Strict-Transport-Security', HSTS);
    const work = () => workFor(request.context, () => this.#application(request, response));
    if (this.#options.sqlRequestIds) inRequest(request.context.id, work);
    else work();
  }

  #end(request: IncomingMessage, response: ServerResponse): void {
    // A request that a pause held back has no context yet.
    const context = request.context as RequestContext | undefined;
    if (!context) return;
    leavePlace(context);
    if (!response.writableEnded) endWorkFor(context);
    for (const tell of context.whenOver) tell(request, response);
  }

  #callerOf({ headers, socket }: IncomingMessage): Caller {
    const key = headers['x-api-key'];
    return {
      address: this.#addressOf(headers['x-forwarded-for'], socket),
      credential: typeof key === 'string' ? key : headers.authorization,
    };
  }

  #addressOf(forwardedFor: string | string[] | undefined, socket: Socket): string {
    const { trustProxy } = this.#options;
    if (trustProxy > 0 && typeof forwardedFor === 'string') {
      // As in addressOf: where an entry is no address, the nearest proxy behind it.
      const hops = forwardedFor.split(',').slice(-trustProxy).map(parseAddress);
      const address = hops.find((hop) => hop !== undefined);
      if (address !== undefined) return networkOf(address);
    }
    let address = this.#addresses.get(socket);
    if (address === undefined) {
      address = networkOf(parseAddress(socket.remoteAddress ?? ''));
      this.#addresses.set(socket, address);
    }
    return address;
  }
}

/** @returns undefined where it is always answered */
function kindOf({ path, valid }: RequestContext): Kind | undefined {
  if (valid && isUnder(PLATFORM_PREFIX, path)) return 'platform';
  if (!valid || isUnderApi(path)) return 'api';
  if (path.startsWith('/oauth/') || path.startsWith('/.well-known/')) return 'oauth';
  return HEALTH.includes(path) ? undefined : 'pages';
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** Calls `then` once the whole body has been received, or more of it than anybody accepts; it is not read yet. */
function whenBodyArrived(request: IncomingMessage, then: () => void): void {
  const look = () => {
    if (!request.complete && request.readableLength < AWAITED_BODY_BYTES) return;
    request.removeListener('readable', look).removeListener('end', look);
    // A stream forgets in the next tick that it had such a listener.
    setImmediate(() => {
      if (!request.socket.destroyed) then();
    });
  };
  request.on('readable', look).on('end', look); // an empty body ends without being readable
}

function refuseBarely(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, ['Content-Length', '0', 'Retry-After', '1']).end();
}
