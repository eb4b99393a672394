// The module for NODE_OPTIONS=--import (docs/operators/monitoring.md, Trace requests). NODE_OPTIONS applies to every Node program that inherits it, including npm,
// health checks and threads; only the server's process is traced.
import { isMainThread } from 'node:worker_threads';

if (
  isMainThread &&
  /[\\/](dist[\\/]src[\\/]main\.js|bin[\\/](?:start|server)\.mjs)$/.test(process.argv[1] ?? '')
)
  await import('./traces.mjs');
