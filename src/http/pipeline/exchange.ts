import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';

/** Returns the request of a guard or decorator. Nest's `switchToHttp` creates three functions each time it is called. */
export function requestOf<Kind extends Request = Request>(context: ArgumentsHost): Kind {
  return context.getArgByIndex<Kind>(0);
}

/** Returns its response. */
export function responseOf(context: ArgumentsHost): Response {
  return context.getArgByIndex<Response>(1);
}
