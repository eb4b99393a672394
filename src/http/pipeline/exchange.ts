import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';

/** The request that a guard or a decorator looks at. Nest's `switchToHttp` makes three functions anew each time it is asked. */
export function requestOf<Kind extends Request = Request>(context: ArgumentsHost): Kind {
  return context.getArgByIndex<Kind>(0);
}

/** Its response. */
export function responseOf(context: ArgumentsHost): Response {
  return context.getArgByIndex<Response>(1);
}
