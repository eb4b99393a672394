// Serves the embedded databases of all test files, in the process that starts the workers and is otherwise idle. There V8 compiles
// and optimizes PGlite's WebAssembly once for the whole run.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const wasm = join(import.meta.dirname, '../../node_modules/@electric-sql/pglite/dist/pglite.wasm');
/** Keeps the compiled module referenced, so that all databases of this process share V8's optimized code. */
const COMPILED = Symbol.for('embedded database, compiled');
let server;

/** Listens on this socket. Each connection has its own thread; each line opens or closes a database. */
export async function startEmbeddedHost(socket) {
  const { EmbeddedThread } = await import('../../dist/src/database/embedded/thread.js');
  globalThis[COMPILED] = new WebAssembly.Module(readFileSync(wasm));
  server = createServer((connection) => {
    connection.unref();
    const thread = new EmbeddedThread();
    thread.unref();
    const opened = new Map();
    const open = async (id, files) => opened.set(id, await thread.open(files));
    const close = async (id) => {
      const { close } = opened.get(id);
      opened.delete(id);
      await close();
    };
    createInterface({ input: connection }).on('line', async (line) => {
      const { id, files } = JSON.parse(line);
      const error = await (files ? open(id, files) : close(id)).then(
        () => undefined,
        ({ message }) => message,
      );
      if (connection.writable) connection.write(`${JSON.stringify({ id, error })}\n`);
    });
    connection.on('error', () => undefined); // a worker was ended
    connection.once('close', () => thread.end());
  });
  await once(server.listen(socket), 'listening');
  server.unref();
}

/** Ends the process when the last worker has disconnected; a worker's thread ends with its connection. */
export function stopEmbeddedHost() {
  server?.close();
}
