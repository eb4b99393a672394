import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Admission } from './admission.js';
import type { Caller, Capacity } from './admission.js';
import { isUnder, isUnderApi, PLATFORM_PREFIX } from './api-headers.js';
import { CONNECTION_BOUNDS, Connections } from './connections.js';
import { networkOf, parseAddress } from '../../values/network.js';
import { describeRequest, leavePlace } from './request-context.js';
import type { RequestContext } from './request-context.js';

/**
 * What is admitted apart, so that a flood of one kind leaves the others alone: the API, what the platform's backend asks for, what programs and browsers ask the
 * authorization server for, and the pages with whatever else there is.
 */
export type Kind = 'api' | 'platform' | 'oauth' | 'pages';

/** 64 requests are answered in 110 ms by a process that answers 600 a second; requests for tokens take twice as much work each. */
export const CAPACITIES: Readonly<Record<Kind, Capacity>> = {
  // One caller's share of a burst, 2/3, is what the two pipelined connections take.
  api: { steady: 64, burst: 192 },
  // Feeds write for seconds, one or two at a time: the others wait.
  platform: { steady: 32, burst: 64 },
  oauth: { steady: 32, burst: 256 },
  // Those who sign in mostly wait: half a second each, whatever the password.
  pages: { steady: 128, burst: 256 },
};

/** Always answered: who asks whether the process is alive must not hear that it is busy. Both cost next to nothing. */
const HEALTH: readonly string[] = ['/livez', '/readyz'];

/** Answers 503, in the form of its kind, at a fraction of the price of an answer. */
export type Refuse = (request: IncomingMessage, response: ServerResponse) => void;

/** More of a body than this is not waited for: no form has as much, and who reads it refuses it. */
const AWAITED_BODY_BYTES = 16_384;

/** RFC 6797. Not for subdomains: they may be somebody else's, or have no certificate. */
const HSTS = 'max-age=31536000';

export interface FrontDoorOptions {
  /** Whether callers come by https, to whatever ends TLS in front of this server. */
  readonly https: boolean;
  /** Number of proxies in front whose X-Forwarded-For is believed. */
  readonly trustProxy: number;
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
  /** How each kind is refused; bare until the application says. */
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
        // Not the end of sending: who does not read the answer keeps no place.
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
    // What needs no credential has no place while its body is still on its way: else who never ends one would keep it.
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
    this.#application(request, response);
  }

  #end(request: IncomingMessage, response: ServerResponse): void {
    // Nothing is known of one that was not begun while there was a pause.
    const context = request.context as RequestContext | undefined;
    if (!context) return;
    leavePlace(context);
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
      // As addressOf: the nearest proxy behind it where an entry is no address.
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

/** Calls `then` when the whole body was received, or so much of it that nobody will take it; it is still to be read. */
function whenBodyArrived(request: IncomingMessage, then: () => void): void {
  const look = () => {
    if (!request.complete && request.readableLength < AWAITED_BODY_BYTES) return;
    request.removeListener('readable', look).removeListener('end', look);
    // A stream forgets that it was listened to in this way in the next tick.
    setImmediate(() => {
      if (!request.socket.destroyed) then();
    });
  };
  request.on('readable', look).on('end', look); // an empty one ends without being readable
}

function refuseBarely(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(503, ['Content-Length', '0', 'Retry-After', '1']).end();
}
