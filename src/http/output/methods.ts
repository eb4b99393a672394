import type { Request, Response } from 'express';
import type { ProblemFilter } from './problem.filter.js';
import { methodNotAllowed } from './problems.js';

/** Answers OPTIONS outside the API, and refuses every other method: those that the path has are `methods`. */
export function answerMethod(
  problems: ProblemFilter,
  methods: readonly string[],
  request: Request,
  response: Response,
): void {
  if (request.method !== 'OPTIONS') {
    problems.answer(methodNotAllowed(methods), request, response);
    return;
  }
  const allow = methods.join(', ');
  response.setHeader('Allow', allow);
  response.setHeader('Content-Length', Buffer.byteLength(allow));
  response.setHeader('Content-Type', 'text/plain');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(allow);
}
