// Runs PGlite in a separate thread (EmbeddedThread), so that queries do not block the server's event loop.
import { existsSync, unlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { PGlite, protocol } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import type { EmbeddedFiles, ThreadRequest, ThreadResponse } from './thread.js';

interface Message {
  readonly connection: number;
  readonly bytes: Uint8Array;
  readonly answer: (data: Uint8Array) => void;
  readonly done: (bytes: number) => void;
  readonly failed: (error: Error) => void;
}

/** First bytes of messages that complete an exchange: Query, Sync, Terminate, password, and (0) the startup message. */
const LAST_OF_A_QUERY = new Set([...'QSXp'].map((type) => type.charCodeAt(0)).concat(0));

/**
 * Assigns PGlite's only session to one connection at a time, for a query or a transaction. Replaces the socket server's queue, which in
 * 0.2.17 interleaves queries and rolls back other connections' transactions. Remove this class when the tests pass without it.
 */
class Turns {
  #waiting: Message[] = [];
  #holder: number | undefined;
  #working = false;

  constructor(private readonly database: PGlite) {}

  enqueue(connection: number, bytes: Uint8Array, answer: Message['answer']): Promise<number> {
    return new Promise((done, failed) => {
      this.#waiting.push({ connection, bytes, answer, done, failed });
      void this.#work();
    });
  }

  getQueueLength(): number {
    return this.#waiting.length;
  }

  /** Drops the waiting messages of a closed connection. */
  clearQueueForHandler(connection: number): void {
    for (const { failed } of this.#waiting.filter((message) => message.connection === connection))
      failed(new Error('the connection is closed'));
    this.#waiting = this.#waiting.filter((message) => message.connection !== connection);
  }

  /** Rolls back the open transaction of a closed connection. */
  async clearTransactionIfNeeded(connection: number): Promise<void> {
    if (this.#holder !== connection) return;
    const ignore = () => undefined;
    await this.enqueue(connection, protocol.serialize.sync(), ignore);
    if (this.database.isInTransaction())
      await this.enqueue(connection, protocol.serialize.query('ROLLBACK'), ignore);
  }

  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (let message = this.#next(); message; message = this.#next()) {
      const { connection, bytes, answer, done, failed } = message;
      this.#holder = connection;
      try {
        done(await this.#exchange(bytes, answer));
      } catch (error) {
        failed(error as Error);
      }
      if (LAST_OF_A_QUERY.has(bytes[0]!) && !this.database.isInTransaction()) this.#holder = undefined;
    }
    this.#working = false;
  }

  async #exchange(message: Uint8Array, answer: Message['answer']): Promise<number> {
    let sent = 0;
    const onRawData = (data: Uint8Array) => {
      sent += data.length;
      answer(data);
    };
    await this.database.runExclusive(() => this.database.execProtocolRawStream(message, { onRawData }));
    return sent;
  }

  #next(): Message | undefined {
    const next = this.#waiting.findIndex(
      ({ connection }) => this.#holder === undefined || connection === this.#holder,
    );
    return next === -1 ? undefined : this.#waiting.splice(next, 1)[0];
  }
}

async function open({ folder, socket }: EmbeddedFiles): Promise<(patienceMs: number) => Promise<void>> {
  const database = await PGlite.create({
    dataDir: folder,
    // The smallest WAL segment size, since every copy of the database includes these files.
    initDbStartParams: ['--wal-segsize=1'],
    // The default of 128 MB slows down the start.
    startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB'],
  });
  const server = new PGLiteSocketServer({ db: database, path: socket, maxConnections: 100 });
  (server as unknown as { queryQueue: Turns }).queryQueue = new Turns(database);
  await server.start();
  return async (patienceMs) => {
    if (existsSync(socket)) unlinkSync(socket); // prevents new connections; processes that are connected may finish
    const deadline = Date.now() + patienceMs;
    while (server.getStats().activeConnections > 0 && Date.now() < deadline) await pause(2);
    await server.stop();
    await database.close();
  };
}

parentPort!.on('message', ({ files, port }: ThreadRequest) => {
  const answer = async (work: Promise<unknown>) => {
    const response = await work.then(
      (): ThreadResponse => ({}),
      (error: unknown): ThreadResponse => ({ error }),
    );
    port.postMessage(response);
  };
  const opened = open(files);
  void answer(opened);
  port.once('message', async (patienceMs: number) => {
    await answer(opened.then((close) => close(patienceMs)));
    port.close();
  });
});
