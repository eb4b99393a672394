// What NODE_OPTIONS=--import names (docs/monitoring.md, Traces). NODE_OPTIONS hold for every program of Node that is started with them, npm,
// health checks and threads among them: the server's process alone is traced.
import { isMainThread } from 'node:worker_threads';

if (isMainThread && /[\\/](dist[\\/]src[\\/]main\.js|bin[\\/]start\.mjs)$/.test(process.argv[1] ?? ''))
  await import('./traces.mjs');
