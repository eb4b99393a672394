// The module for NODE_OPTIONS=--import (docs/operators/monitoring.md, Traces). NODE_OPTIONS apply to every Node program that inherits them, including npm,
// health checks and threads; only the server's process is traced.
import { isMainThread } from 'node:worker_threads';

if (
  isMainThread &&
  /[\\/](dist[\\/]src[\\/]main\.js|bin[\\/](?:start|server)\.mjs)$/.test(process.argv[1] ?? '')
)
  await import('./traces.mjs');
