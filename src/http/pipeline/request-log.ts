import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import { LRUCache } from 'lru-cache';
import { withoutSecrets } from '../../values/secret-forms.js';
import type { Logger } from '../../runtime/logger.js';
import { plain as printable, styled } from '../../runtime/terminal.js';

/** Version, trace id, the caller's span, flags; later versions may add fields (W3C Trace Context §3.2). */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/** Reads the trace id: 32 hexadecimal digits. @param traceparent the header @returns undefined if it is missing or invalid */
export function parseTraceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, version, traceId, more] = TRACEPARENT.exec(traceparent) ?? [];
  return version === '00' && more !== undefined ? undefined : traceId;
}

/** Logs each request when it ends, also if aborted, without its query. */
export function requestLog(logger: Logger) {
  const write = (message: IncomingMessage, response: ServerResponse) => {
    const request = message as Request;
    const { id, path, route, startedAt, userId, credentialId, problem, refusal } = request.context;
    logger.info(
      {
        request_id: id,
        trace_id: parseTraceId(request.headers.traceparent),
        method: request.method,
        route: route ?? (request.route as { path: string } | undefined)?.path,
        // Logs the path only if there is no route: a route's path may contain the id of a sign-in.
        path: (route ?? request.route) ? undefined : plain(path),
        status: response.statusCode,
        duration_ms: Math.round(Number(process.hrtime.bigint() - startedAt) / 1e4) / 100,
        user_id: userId,
        credential_id: credentialId,
        problem,
        refusal,
        aborted: response.writableFinished ? undefined : true,
      },
      'request',
    );
  };
  return (request: Request, _response: Response, next: NextFunction): void => {
    request.context.whenOver.push(write);
    next();
  };
}

/** Paths that monitoring systems request often. */
const PROBES = ['/livez', '/readyz'];

/** Writes a line for each request, except probes, without the query's values. Caches results of `usernameOf`. */
export function requestLines(write: (line: string) => void, usernameOf: (userId: number) => Promise<string>) {
  const usernames = new LRUCache<number, Promise<string>>({ max: 1_000 });
  return (request: Request, response: Response, next: NextFunction): void => {
    const query = request.url.split('?').slice(1).join('?');
    response.once('close', () => {
      const { path, startedAt, userId } = request.context;
      if (PROBES.includes(path)) return;
      const ms = Math.round(Number(process.hrtime.bigint() - startedAt) / 1e6);
      const time = new Date().toTimeString().slice(0, 8);
      const status = response.writableFinished
        ? statusText(response.statusCode)
        : styled('yellow', 'aborted');
      const line = `${styled('dim', time)} ${request.method} ${withoutSecrets(printable(path + namesOf(query)))} ${status} ${ms} ms`;
      if (userId === undefined) return write(line);
      const username = usernames.get(userId) ?? usernameOf(userId).catch(() => String(userId));
      usernames.set(userId, username);
      void username.then((name) => write(`${line} ${printable(name)}`));
    });
    next();
  };
}

function statusText(status: number): string {
  return styled(status < 400 ? 'green' : status < 500 ? 'yellow' : 'red', String(status));
}

/** Shows only the names of a query's parameters: `?limit=…&sort=…` */
function namesOf(query: string): string {
  const names = [...new Set(new URLSearchParams(query).keys())].map(
    (name) => `${encodeURIComponent(name)}=…`,
  );
  return names.length === 0 ? '' : `?${names.join('&')}`;
}

/** Replaces path segments that are not plain words by `*`, since they could contain a misplaced credential. */
function plain(path: string): string {
  return path
    .slice(0, 200)
    .split('/')
    .map((part) => (/^[A-Za-z_.-]{0,24}$/.test(part) ? part : '*'))
    .join('/');
}
