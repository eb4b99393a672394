import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from '../../crypto/random.js';
import type { Place } from './admission.js';

/** An app, or a key, that a member made for themselves. */
export interface DevelopedApp {
  readonly kind: 'client' | 'key';
  readonly id: string;
}

/** What the pipeline knows of a request while it runs; set before everything else. */
export interface RequestContext {
  readonly id: string;
  /** `process.hrtime.bigint()` at arrival. */
  readonly startedAt: bigint;
  /** Path as sent, without the query. */
  readonly path: string;
  /** Whether the target of the request is a path at all; else there is nothing here of that name. */
  readonly valid: boolean;
  /** Template of the route, such as `/api/public/events/:id`, once it is known. */
  route: string | undefined;
  /** Of the caller; see `addressOf`, which sets it. */
  address?: string | undefined;
  /** For the log and the metrics: who called and how it ended. Never a secret. */
  userId: number | undefined;
  credentialId: string | undefined;
  /** Whose request it is, where a member developed that: they see it in their list. */
  developedApp: DevelopedApp | undefined;
  /** The code of the problem that was answered. */
  problem: string | undefined;
  /** What of the request the problem is about: a parameter, a field of the body or a scope. It may be any text. */
  concerns: string | undefined;
  /** Why a credential was refused, which the answer does not say. */
  refusal: string | undefined;
  /** The body is being read: a slow client is no reason for a 503. */
  readingBody: boolean;
  /** Since when it waits for its answer, by `performance.now()`: see {@link responseDeadline}. */
  waitsSince: number;
  /** Among those that wait. */
  placeUnderWay: number;
  /** Until it was answered: see {@link Admission}. */
  place: Place | undefined;
  /** The scope that an answer uses; null for none. */
  scope: string | null;
  /** To be called as its answer is written, before the caller can have it. */
  whenWritten: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** To be called when it is over, whatever became of it. */
  readonly whenOver: ((request: IncomingMessage, response: ServerResponse) => void)[];
}

declare module 'node:http' {
  interface IncomingMessage {
    context: RequestContext;
  }
}

/** Gives back the place of a request among those under way: of one that was answered, or that only waits from now on. */
export function leavePlace(context: RequestContext): void {
  context.place?.admission.leave(context.place);
  context.place = undefined;
}

/** What a request to a proxy begins with, which servers take too (RFC 9112 §3.2.2). Nobody has a name and a password there. */
const ORIGIN = /^https?:\/\/[^/?#@\\]+/i;
/** A path and a query of visible ASCII. Whatever is more could be another path to one parser than to the next. */
const TARGET = /^\/[!"$-[\]-~]*$/;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * First of all: gives the request its id and its context. Here alone it is judged what its path is: `request.url` is from now on
 * a path to the letter, with its query, or `/` where the target is none.
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
  };
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

/** A path that cannot be decoded names nothing: it goes on as what it says to the letter, and is not found. */
function decodable(url: string, path: string): string {
  if (!path.includes('%')) return url;
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length);
  }
}
