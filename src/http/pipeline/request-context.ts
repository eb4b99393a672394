import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from '../../crypto/random.js';
import { looksSecret } from '../../values/secret-forms.js';
import type { Admission, Caller } from '../admission/admission.js';
import { Problem } from '../output/problems.js';
import { Requester } from '../../database/postgres/callers.js';
import { ASSISTANTS_PATH } from './api-headers.js';

/** An app or key that a member created at `/developer`. */
export interface DevelopedApp {
  readonly kind: 'client' | 'key';
  readonly id: string;
}

const NOBODY: Caller = { address: '', credential: '' };
const NO_BODY = () => () => undefined;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

export class RequestContext {
  readonly startedAt = process.hrtime.bigint();
  /** Template of the route, such as `/api/public/events/:id`, once it is known. */
  route: string | undefined = undefined;
  /** For a page: its language. */
  language: string | undefined = undefined;
  /** The sender's address: from trusted proxies, or set by the first call of `addressOf`. */
  address: string | undefined = undefined;
  userId: number | undefined = undefined;
  credentialId: string | undefined = undefined;
  /** The app or key that sent the request, if a member created it. */
  developedApp: DevelopedApp | undefined = undefined;
  /** Code of the problem in the response. */
  problem: string | undefined = undefined;
  /** A parameter, field or scope that caused the problem; untrusted text. */
  concerns: string | undefined = undefined;
  /** Why a credential was rejected; the response does not contain it. */
  refusal: string | undefined = undefined;
  /** Whether the request is waiting for the rest of its body: see {@link receiving}. */
  readingBody = false;
  /** Start of the deadline, from `performance.now()`: see {@link responseDeadline}. */
  waitsSince = 0;
  indexInProgress = 0;
  caller = NOBODY;
  readonly requester = new Requester();
  /** The admission that gave the request a slot; undefined while it has none. */
  slot: Admission | undefined = undefined;
  /** Counts the body as incomplete until the returned function is called. */
  awaitBody: () => () => void = NO_BODY;
  /** Whether the response is complete, or the client has disconnected. */
  isOver = false;
  /** Checks the credential again; undefined for a request without a credential. */
  confirm: ((request: IncomingMessage) => Promise<void>) | undefined = undefined;
  /** Called when the application has written the whole response. */
  whenWritten: Listener | undefined = undefined;
  /** Called when the response is complete, or the client has disconnected. */
  readonly whenOver: Listener[] = [];

  /** @param path without the query @param valid whether the target is valid */
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

/** Releases a request's slot. */
export function leaveSlot(context: RequestContext): void {
  context.slot?.leave();
  context.slot = undefined;
}

/** Releases the slot during `wait`, then takes a slot again. @throws Problem temporarily_unavailable if the client has left */
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

/** Checks the request's credential again, if it has one. Call it after a wait. @throws Problem if the credential is no longer valid */
export async function confirmCredential(request: IncomingMessage): Promise<void> {
  await request.context.confirm?.(request);
}

/** Reads a body. While it waits for the rest, the request has no slot and no deadline. Then checks the credential again. */
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

/** The beginning of a target in absolute form, which servers must accept (RFC 9112 §3.2.2), without user and password. */
const ORIGIN = /^https?:\/\/[^/?#@\\]+/i;
/** A path and a query in visible ASCII without `#` and `\`: parsers could disagree about the excluded characters. */
const TARGET = /^\/[!"$-[\]-~]*$/;
/** Some clients append a slash to the path of the API for assistants, and to the path of its metadata. */
const SLASHED = new RegExp(`^((/\\.well-known/oauth-protected-resource)?${ASSISTANTS_PATH})/(?=\\?|$)`);
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** Sets `request.context`, and sets `request.url` to a path with query, or to `/` if the target is invalid. */
export function describeRequest(request: IncomingMessage): void {
  const given = request.headers['x-request-id'];
  const target = request.url ?? '';
  const local = TARGET.test(target) ? target : target.replace(ORIGIN, '').replace(/^(?=\?|$)/, '/');
  const url = local.replace(SLASHED, '$1');
  const valid = TARGET.test(url);
  const path = pathOf(url);
  request.url = valid ? decodable(url, path) : '/';
  const isId = typeof given === 'string' && REQUEST_ID.test(given) && !looksSecret(given);
  const id = isId ? given : randomUUID();
  request.context = new RequestContext(id, valid ? path : pathOf(target), valid);
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

/** Escapes each `%` of an undecodable path, so that Express can decode the path. */
function decodable(url: string, path: string): string {
  if (!path.includes('%')) return url;
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length);
  }
}

/** Returns the request of a guard or decorator. Faster than Nest's `switchToHttp`, which creates functions on each call. */
export function requestOf<Kind extends Request = Request>(context: ArgumentsHost): Kind {
  return context.getArgByIndex<Kind>(0);
}

/** Returns the response of a guard or decorator. */
export function responseOf(context: ArgumentsHost): Response {
  return context.getArgByIndex<Response>(1);
}
