import { describe, expect, it } from '@jest/globals';
import type { Request, RequestHandler, Response } from 'express';
import { compose } from './compose.js';

const fault = new Error('a fault');
const passes: RequestHandler = (_request, _response, next) => next();

/** Returns the argument of the last `next`, and whether the handler after `handlers` was called. */
function outcome(...handlers: RequestHandler[]): Promise<{ error: unknown; reached: boolean }> {
  let reached = false;
  const last: RequestHandler = (_request, _response, next) => {
    reached = true;
    next();
  };
  return new Promise((resolve) => {
    void compose(...handlers, last)({} as Request, {} as Response, (error?: unknown) =>
      resolve({ error, reached }),
    );
  });
}

describe('composed handlers', () => {
  it('run up to the last handler if none fails', async () => {
    expect(await outcome(passes, passes)).toEqual({ error: undefined, reached: true });
  });

  it.each<[string, RequestHandler]>([
    ['is passed to next', (_request, _response, next) => next(fault)],
    [
      'is thrown',
      () => {
        throw fault;
      },
    ],
    ['is a rejected promise', () => Promise.reject(fault)],
    [
      'is a promise that is rejected later',
      async () => {
        await Promise.resolve();
        throw fault;
      },
    ],
  ])('stop if an error %s, and pass the error to Express', async (_, faulty) => {
    expect(await outcome(faulty)).toEqual({ error: fault, reached: false });
    expect(await outcome(passes, compose(passes, faulty))).toEqual({ error: fault, reached: false });
  });
});
