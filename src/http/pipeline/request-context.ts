import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from '../../crypto/random.js';
import type { Admission, Caller } from '../admission/admission.js';
import { Problem } from '../output/problems.js';
import { Requester } from '../../database/postgres/callers.js';
import { ASSISTANTS_PATH } from './api-headers.js';

/** An app, or a key, that a member made for themselves. */
export interface DevelopedApp {
  readonly kind: 'client' | 'key';
  readonly id: string;
}

const NOBODY: Caller = { address: '', credential: '' };
const NO_BODY = () => () => undefined;

/** Called with a request and its response at some point of its life. */
type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** What the pipeline knows about a request while it runs; set before everything else. */
export class RequestContext {
  readonly startedAt = process.hrtime.bigint();
  /** Template of the route, such as `/api/public/events/:id`, once it is known. */
  route: string | undefined = undefined;
  /** For a page: the language that the member or the browser prefers. */
  language: string | undefined = undefined;
  /** The caller's address; see `addressOf`. */
  address: string | undefined = undefined;
  /** For the log and the metrics: who called, and how it ended. Never a secret. */
  userId: number | undefined = undefined;
  credentialId: string | undefined = undefined;
  /** The app or key that sent it, where a member made that: they see the request in their list. */
  developedApp: DevelopedApp | undefined = undefined;
  /** The code of the problem that was answered. */
  problem: string | undefined = undefined;
  /** The parameter, field of the body or scope that the problem is about. It may be any text. */
  concerns: string | undefined = undefined;
  /** Why a credential was refused, which the response does not say. */
  refusal: string | undefined = undefined;
  /** The body is still to come: see {@link receiving}. */
  readingBody = false;
  /** Since when it has waited for its response, by `performance.now()`: see {@link responseDeadline}. */
  waitsSince = 0;
  /** Its index among those that wait. */
  placeUnderWay = 0;
  caller = NOBODY;
  /** For whom its work is done. */
  readonly requester = new Requester();
  /** Where it has a slot while the server works on it. */
  slot: Admission | undefined = undefined;
  /** Counts it among those whose bodies are still to come, until what it returns is called. */
  awaitBody: () => () => void = NO_BODY;
  /** It was answered, or its client is gone. */
  isOver = false;
  /** The scope that the response uses; null for none. */
  scope: string | null = null;
  /** Checks again that the credential it came with is valid; undefined for a request without one. */
  confirm: ((request: IncomingMessage) => Promise<void>) | undefined = undefined;
  /** To be called when its response is written, before the caller can have it. */
  whenWritten: Listener | undefined = undefined;
  /** To be called when it is over, whatever became of it. */
  readonly whenOver: Listener[] = [];

  /**
   * @param path as sent, without the query (and without the slash that some clients add to the address for assistants)
   * @param valid whether the request's target is a path at all; otherwise it is not found
   */
  constructor(
    readonly id: string,
    readonly path: string,
    readonly valid: boolean,
  ) {}
}

declare module 'node:http' {
  interface IncomingMessage {
    context: RequestContext;
  }
}

/** Gives back a request's slot among those at work. */
export function leaveSlot(context: RequestContext): void {
  context.slot?.leave();
  context.slot = undefined;
}

/**
 * Waits for something that is no work of this server, without the request's slot, and then for its turn to get one again.
 *
 * @throws Problem temporarily_unavailable if its client has left meanwhile, or it was answered
 */
export async function withoutSlot<Result>(
  { context, socket }: IncomingMessage,
  wait: () => Promise<Result>,
): Promise<Result> {
  const { slot, caller } = context;
  leaveSlot(context);
  const result = await wait();
  if (slot && !socket.destroyed)
    await new Promise<void>((resolve) => {
      slot.enter(caller, () => {
        context.slot = slot;
        resolve();
      });
    });
  if (context.isOver) leaveSlot(context);
  if (slot && !context.slot) throw new Problem('temporarily_unavailable');
  return result;
}

/**
 * Checks again that the request's credential is valid: after each wait that can outlast it, before anything is written or returned.
 *
 * @throws Problem invalid_credentials, insufficient_scope; or what the database throws
 */
export async function confirmCredential(request: IncomingMessage): Promise<void> {
  await request.context.confirm?.(request);
}

/**
 * Reads a request's body with `read`. A slow client is no reason for a 503, and nobody else's: until the body has arrived, the request
 * has no slot, and its deadline does not run. Then its credential must still be valid.
 */
export async function receiving<Body>(request: IncomingMessage, read: () => Promise<Body>): Promise<Body> {
  if (request.complete) return read();
  const { context } = request;
  context.readingBody = true;
  const arrived = context.awaitBody();
  try {
    const body = await withoutSlot(request, () => read().finally(arrived));
    await confirmCredential(request);
    return body;
  } finally {
    context.readingBody = false;
    context.waitsSince = performance.now();
  }
}

/** The beginning of a target in absolute form, which servers have to accept too (RFC 9112 §3.2.2); without user and password. */
const ORIGIN = /^https?:\/\/[^/?#@\\]+/i;
/** A path and a query in visible ASCII. Anything else could be a different path to different parsers. */
const TARGET = /^\/[!"$-[\]-~]*$/;
/** Some clients add a slash to the address for assistants, also where they ask for its metadata. */
const SLASHED = new RegExp(`^((/\\.well-known/oauth-protected-resource)?${ASSISTANTS_PATH})/(?=\\?|$)`);
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Runs first: gives the request its id and its context. Only here is it decided what its path is: from now on `request.url` is
 * a literal path with its query, or `/` where the target is no path.
 */
export function describeRequest(request: IncomingMessage): void {
  const given = request.headers['x-request-id'];
  const target = request.url ?? '';
  const local = TARGET.test(target) ? target : target.replace(ORIGIN, '').replace(/^(?=\?|$)/, '/');
  const url = local.replace(SLASHED, '$1');
  const valid = TARGET.test(url);
  const path = pathOf(url);
  request.url = valid ? decodable(url, path) : '/';
  const id = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
  request.context = new RequestContext(id, valid ? path : pathOf(target), valid);
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

/** Returns the request of a guard or decorator. Nest's `switchToHttp` creates three functions each time it is called. */
export function requestOf<Kind extends Request = Request>(context: ArgumentsHost): Kind {
  return context.getArgByIndex<Kind>(0);
}

/** Returns its response. */
export function responseOf(context: ArgumentsHost): Response {
  return context.getArgByIndex<Response>(1);
}
