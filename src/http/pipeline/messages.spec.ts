import { createServer, type RequestListener } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import express, { type RequestHandler } from 'express';
import { listen } from '../../../test/support/listen.js';
import { makeMessageClasses } from './messages.js';

/** The response of an Express application with this handler. */
async function answerOf(
  handler: RequestHandler,
  before: RequestListener = () => undefined,
): Promise<Response> {
  const app = express().disable('x-powered-by').use(handler);
  const server = createServer(makeMessageClasses(app), (request, response) => {
    before(request, response);
    (app as RequestListener)(request, response);
  });
  const url = await listen(server);
  try {
    return await fetch(url, { headers: { Connection: 'close' } });
  } finally {
    server.close();
  }
}

describe('an application’s requests and responses', () => {
  it('have Express’s prototypes from the start', async () => {
    let changed = true;
    let found: object[] = [];
    await answerOf(
      (request, response) => {
        changed = [request, response].some((message, i) => Object.getPrototypeOf(message) !== found[i]);
        response.end();
      },
      (...messages) => (found = messages.map((message) => Object.getPrototypeOf(message) as object)),
    );
    expect(changed).toBe(false);
  });

  it('send the gathered headers, regardless of the method that ends the response', async () => {
    for (const end of [
      (response) => response.end('done'),
      (response) => response.json('done'),
      (response) => response.writeHead(200).end('done'),
      (response) => response.writeHead(200, 'Fine').end('done'),
    ] as ((response: Parameters<RequestHandler>[1]) => void)[]) {
      const { headers } = await answerOf((_request, response) => {
        response.gather('X-One', '1');
        response.gather('X-Two', '2');
        end(response);
      });
      expect([headers.get('x-one'), headers.get('x-two')]).toEqual(['1', '2']);
    }
  });

  it('have no header twice: writeHead overrides set headers, which override gathered headers', async () => {
    for (const given of [{ 'x-ONE': 'given' }, ['x-ONE', 'given']]) {
      const { headers } = await answerOf((_request, response) => {
        response.gather('X-One', 'gathered');
        response.gather('X-Two', 'gathered');
        response.gather('X-Three', 'gathered');
        response.setHeader('x-one', 'set');
        response.setHeader('x-two', 'set');
        response.writeHead(200, given as Record<string, string>).end();
      });
      expect(['x-one', 'x-two', 'x-three'].map((name) => headers.get(name))).toEqual([
        'given',
        'set',
        'gathered',
      ]);
    }
  });

  it('reject a value that would inject a header', async () => {
    const { status, headers } = await answerOf((_request, response) => {
      response.gather('X-One', '1\r\nX-Two: 2');
      try {
        response.writeHead(200);
      } catch {
        response.destroy();
      }
    }).catch(() => ({ status: 0, headers: new Headers() }));
    expect([status, headers.get('x-two')]).toEqual([0, null]);
  });
});
