import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from '../../crypto/random.js';
import type { Caller } from '../../database/callers.js';
import type { Place } from './admission.js';

/** An app, or a key, that a member made for themselves. */
export interface DevelopedApp {
  readonly kind: 'client' | 'key';
  readonly id: string;
}

/** What the pipeline knows about a request while it runs; set before everything else. */
export interface RequestContext extends Caller {
  readonly id: string;
  /** `process.hrtime.bigint()` at arrival. */
  readonly startedAt: bigint;
  /** Path as sent, without the query. */
  readonly path: string;
  /** Whether the request's target is a path at all; otherwise it is not found. */
  readonly valid: boolean;
  /** Template of the route, such as `/api/public/events/:id`, once it is known. */
  route: string | undefined;
  /** The caller's address; see `addressOf`, which sets it. */
  address?: string | undefined;
  /** For the log and the metrics: who called, and how it ended. Never a secret. */
  userId: number | undefined;
  credentialId: string | undefined;
  /** The app or key that sent it, where a member made that: they see the request in their list. */
  developedApp: DevelopedApp | undefined;
  /** The code of the problem that was answered. */
  problem: string | undefined;
  /** The parameter, field of the body or scope that the problem is about. It may be any text. */
  concerns: string | undefined;
  /** Why a credential was refused, which the response does not say. */
  refusal: string | undefined;
  /** The body is being read: a slow client is no reason for a 503. */
  readingBody: boolean;
  /** Since when it has waited for its response, by `performance.now()`: see {@link responseDeadline}. */
  waitsSince: number;
  /** Its index among those that wait. */
  placeUnderWay: number;
  /** Held until it was answered: see {@link Admission}. */
  place: Place | undefined;
  /** The scope that the response uses; null for none. */
  scope: string | null;
  /** To be called when its response is written, before the caller can have it. */
  whenWritten: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** To be called when it is over, whatever became of it. */
  readonly whenOver: ((request: IncomingMessage, response: ServerResponse) => void)[];
}

declare module 'node:http' {
  interface IncomingMessage {
    context: RequestContext;
  }
}

/** Gives back a request's place among those under way, when it was answered, or only waits from now on. */
export function leavePlace(context: RequestContext): void {
  context.place?.admission.leave(context.place);
  context.place = undefined;
}

/** The beginning of a target in absolute form, which servers have to accept too (RFC 9112 §3.2.2); without user and password. */
const ORIGIN = /^https?:\/\/[^/?#@\\]+/i;
/** A path and a query in visible ASCII. Anything else could be a different path to different parsers. */
const TARGET = /^\/[!"$-[\]-~]*$/;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Runs first: gives the request its id and its context. Only here is it decided what its path is: from now on `request.url` is
 * a literal path with its query, or `/` where the target is no path.
 */
export function describeRequest(request: IncomingMessage): void {
  const given = request.headers['x-request-id'];
  const target = request.url ?? '';
  const url = TARGET.test(target) ? target : target.replace(ORIGIN, '').replace(/^(?=\?|$)/, '/');
  const valid = TARGET.test(url);
  const path = pathOf(url);
  request.url = valid ? decodable(url, path) : '/';
  request.context = {
    id: typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID(),
    startedAt: process.hrtime.bigint(),
    path: valid ? path : pathOf(target),
    valid,
    route: undefined,
    userId: undefined,
    credentialId: undefined,
    developedApp: undefined,
    problem: undefined,
    concerns: undefined,
    refusal: undefined,
    readingBody: false,
    waitsSince: 0,
    placeUnderWay: 0,
    place: undefined,
    scope: null,
    whenWritten: undefined,
    whenOver: [],
    gone: false,
    whenGone: new Set(),
  };
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

/** A path that cannot be decoded names nothing: it is passed on literally, and is not found. */
function decodable(url: string, path: string): string {
  if (!path.includes('%')) return url;
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length);
  }
}
