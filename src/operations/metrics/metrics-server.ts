import { once } from 'node:events';
import { createServer } from 'node:http';
import { Registry } from 'prom-client';
import type { Config } from '../../config/config.js';
import { OperatorError } from '../../values/operator-error.js';

/**
 * Serves the result of `collect` at GET /metrics on METRICS_PORT; does nothing if that is not set.
 *
 * @returns what ends it
 * @throws OperatorError if the port cannot be used
 */
export async function serveMetrics(
  { metricsPort, host }: Config,
  collect: () => Promise<string>,
): Promise<() => Promise<void>> {
  if (metricsPort === undefined) return async () => undefined;
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    collect().then(
      (text) => response.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(metricsPort, host);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new OperatorError(
      `METRICS_PORT ${metricsPort} on ${host} cannot be used (${error.code}): set another one`,
      { cause: error },
    );
  });
  return async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  };
}
