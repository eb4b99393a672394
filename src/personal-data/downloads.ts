import type { ServerResponse } from 'node:http';

interface DownloadBounds {
  /** Files that this process sends at the same time. */
  readonly atOnce: number;
  /** How long all of a file may take, in ms. */
  readonly longestMs: number;
  /** How long the reader may take for {@link CHUNK_BYTES}, in ms. */
  readonly stalledMs: number;
}

const BOUNDS: DownloadBounds = { atOnce: 4, longestMs: 300_000, stalledMs: 10_000 };

/** Bytes that are handed over at a time. */
const CHUNK_BYTES = 16_384;

/** Why a file is not sent now: the member is downloading one already, or too many others are. */
type DownloadRefusal = 'running' | 'full';

/**
 * Sends files that are read while they are sent. However slowly somebody reads, the rest of the file is not read before they have taken
 * what was, and whoever takes nothing is disconnected: a part of a file is never taken for the whole.
 */
export class Downloads {
  readonly #members = new Set<number>();

  constructor(private readonly bounds: DownloadBounds = BOUNDS) {}

  /** The number of files that are being sent. */
  get underWay(): number {
    return this.#members.size;
  }

  /** Runs `send`, with which a member downloads a file, unless it cannot be sent now. */
  async run(userId: number, send: () => Promise<void>): Promise<DownloadRefusal | undefined> {
    if (this.#members.has(userId)) return 'running';
    if (this.#members.size >= this.bounds.atOnce) return 'full';
    this.#members.add(userId);
    try {
      await send();
    } finally {
      this.#members.delete(userId);
    }
    return undefined;
  }

  /** Sends the pieces of a file one after the other. @throws if the reader is gone, or was disconnected */
  async send(response: ServerResponse, pieces: AsyncIterable<string | Buffer>): Promise<void> {
    const late = setTimeout(() => response.destroy(), this.bounds.longestMs);
    try {
      for await (const piece of pieces) {
        const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
        for (let start = 0; start < bytes.length; start += CHUNK_BYTES)
          await handOver(response, bytes.subarray(start, start + CHUNK_BYTES), this.bounds.stalledMs);
      }
      response.end();
    } catch (error) {
      response.destroy();
      throw error;
    } finally {
      clearTimeout(late);
    }
  }
}

/** Resolves when the system has taken the bytes. */
function handOver(response: ServerResponse, bytes: Buffer, stalledMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stalled = setTimeout(() => response.destroy(), stalledMs);
    response.write(bytes, (error) => {
      clearTimeout(stalled);
      if (error ?? response.destroyed) reject(error ?? new Error('the reader is gone'));
      else resolve();
    });
  });
}
