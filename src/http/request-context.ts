import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** What the pipeline knows of a request while it runs; set by the first middleware. */
export interface RequestContext {
  readonly id: string;
  /** `process.hrtime.bigint()` at arrival. */
  readonly startedAt: bigint;
  /** Path as sent, without the query. */
  readonly path: string;
  /** Template of the route, such as `/api/public/events/:id`, once it is known. */
  route: string | undefined;
  /** Of the caller; see `addressOf`, which sets it. */
  address?: string | undefined;
  /** For the log and the metrics: who called and how it ended. Never a secret. */
  userId: number | undefined;
  credentialId: string | undefined;
  /** The code of the problem that was answered. */
  problem: string | undefined;
  /** Why a credential was refused, which the answer does not say. */
  refusal: string | undefined;
}

declare module 'node:http' {
  interface IncomingMessage {
    context: RequestContext;
  }
}

/** What a request to a proxy begins with, which servers take too (RFC 9112 §3.2.2). */
const ORIGIN = /^https?:\/\/[^/?]*/i;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** First middleware of all: gives the request its id and its context, and the answer its X-Request-Id. */
export function beginRequest(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const given = request.headers['x-request-id'];
  const id = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
  let url = request.url ?? '/';
  if (ORIGIN.test(url)) request.url = url = url.replace(ORIGIN, '').replace(/^(?!\/)/, '/');
  const query = url.indexOf('?');
  request.context = {
    id,
    startedAt: process.hrtime.bigint(),
    path: query === -1 ? url : url.slice(0, query),
    route: undefined,
    userId: undefined,
    credentialId: undefined,
    problem: undefined,
    refusal: undefined,
  };
  response.setHeader('X-Request-Id', id);
  next();
}
