// Runs PGlite in a thread of its own, so that a query does not stop the server's event loop. No imports of
// ours: the tests load this file as it stands, by Node's own type stripping.
import { existsSync, unlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

const { folder, socket, snapshot } = workerData as { folder?: string; socket: string; snapshot?: string };

const { readFileSync } = await import('node:fs');
const database = await PGlite.create({
  dataDir: folder,
  ...(snapshot ? { loadDataDir: new Blob([readFileSync(snapshot)]) } : {}),
});
const server = new PGLiteSocketServer({ db: database, path: socket, maxConnections: 100 });
await server.start();
parentPort?.postMessage('ready');

parentPort?.once('message', async (patienceMs: number) => {
  if (existsSync(socket)) unlinkSync(socket); // nobody new: other processes that came by it may finish
  const deadline = Date.now() + patienceMs;
  while (server.getStats().activeConnections > 0 && Date.now() < deadline) await pause(20);
  await server.stop();
  await database.close();
  parentPort?.postMessage('closed');
});
