import { Worker } from 'node:worker_threads';

/**
 * A PGlite in a thread, served on a Unix socket.
 *
 * @param data the folder of its files, which are made where there are none, and the path of the socket
 * @returns how to end it: other processes that are connected have so long to finish (5 s, unless said)
 * @throws Error where the files cannot be opened
 */
export async function startThread(data: {
  folder: string;
  socket: string;
}): Promise<{ close(patienceMs?: number): Promise<void> }> {
  const worker = new Worker(new URL('./embedded.worker.js', import.meta.url), { workerData: data });
  const failed = new Promise<never>((_, reject) => {
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`its thread ended with ${code}`)));
  });
  failed.catch(() => undefined);
  const said = () => Promise.race([new Promise((resolve) => worker.once('message', resolve)), failed]);
  await said();
  return {
    close: async (patienceMs = 5_000) => {
      worker.postMessage(patienceMs);
      await said();
      await worker.terminate();
    },
  };
}
