import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from '../logger.js';

/** One line a request, when it is over: no query, no header, no secret. */
export function requestLog(logger: Logger) {
  const write = (message: IncomingMessage, response: ServerResponse) => {
    const request = message as Request;
    const { id, path, route, startedAt, userId, credentialId, problem, refusal } = request.context;
    logger.info(
      {
        request_id: id,
        method: request.method,
        route: route ?? (request.route as { path: string } | undefined)?.path,
        // Of what has no route; a path of ours may hold the id of a sign-in.
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

/** Plain words of a path; whatever else stands in it could be a credential that went astray. */
function plain(path: string): string {
  return path
    .slice(0, 200)
    .split('/')
    .map((part) => (/^[A-Za-z_.-]{0,24}$/.test(part) ? part : '*'))
    .join('/');
}
