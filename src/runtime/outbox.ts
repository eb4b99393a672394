import { setTimeout } from 'node:timers/promises';
import type { PostResponse } from './public-https.js';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const MAX_WAIT = 10 * HOUR;
/** Wait after each failed attempt, in seconds; no attempt follows if the attempt after the last wait fails. */
export const RETRY_AFTER = [5, 5 * MINUTE, HOUR / 2, 2 * HOUR, 5 * HOUR, MAX_WAIT, MAX_WAIT] as const;
/** Duration of a claim in seconds: twice the time limit of an attempt. */
export const LEASE_SECONDS = 20;
export const MAX_PER_ENDPOINT = 8;

/** Time limit in ms of an attempt: name resolution, connection and response. */
const PATIENCE_MS = 10_000;
const MAX_ERROR_LENGTH = 200;
/** Maximum messages of an outbox in progress in this process: all endpoints could be slow at once. */
const MAX_IN_PROGRESS = 256;
/** Maximum wait in ms at shutdown for messages in progress; then the process aborts them. */
const LAST_MS = 2_000;
const MAX_CLAIM_MS = 100;

export interface Attempt {
  readonly taken: boolean;
  /** null if there was no response. */
  readonly status: number | null;
  readonly error: string | null;
  readonly seconds: number;
  /** Whether the response was 410: the endpoint no longer exists. */
  readonly gone: boolean;
  /** Pause that the endpoint requests (Retry-After), in seconds; 0 if none. */
  readonly retryAfter: number;
}

/** Statuses whose Retry-After delays the next attempt (RFC 6585 §4, RFC 9110 §15.6.4). */
const POSTPONING = new Set([429, 503]);

function retrySeconds({ status, retryAfter = '' }: PostResponse): number {
  if (!POSTPONING.has(status)) return 0;
  const seconds = /^\d+$/.test(retryAfter)
    ? Number(retryAfter)
    : (Date.parse(retryAfter) - Date.now()) / 1000;
  return Math.min(Math.max(0, seconds || 0), MAX_WAIT);
}

/** Computes the wait after an attempt. @param before number of earlier attempts @returns seconds; undefined if no attempt follows */
export function waitAfter(before: number, { taken, retryAfter }: Attempt): number | undefined {
  const wait = taken ? undefined : RETRY_AFTER[before];
  return wait === undefined ? undefined : Math.max(wait, retryAfter);
}

/** Sends a message once; only 2xx is a success. @param post sends the message, unless the signal aborts @param stop aborts the attempt */
export async function attempt(
  post: (signal: AbortSignal) => Promise<PostResponse>,
  stop?: AbortSignal,
): Promise<Attempt> {
  const startedAt = performance.now();
  const end = AbortSignal.timeout(PATIENCE_MS);
  const seconds = () => (performance.now() - startedAt) / 1000;
  try {
    const response = await post(stop ? AbortSignal.any([end, stop]) : end);
    const { status } = response;
    return {
      taken: status >= 200 && status < 300,
      status,
      error: null,
      seconds: seconds(),
      gone: status === 410,
      retryAfter: retrySeconds(response),
    };
  } catch (error) {
    const { code, message: text } = error as NodeJS.ErrnoException;
    const step = code === undefined ? text : `${code}: ${text}`;
    const reason = end.aborted ? `no response within ${PATIENCE_MS / 1000} s` : step;
    const failed = {
      error: reason.slice(0, MAX_ERROR_LENGTH),
      seconds: seconds(),
      gone: false,
      retryAfter: 0,
    };
    return { taken: false, status: null, ...failed };
  }
}

/** A queue in the database, from which every instance can send messages. */
interface Queue<Message> {
  /** Claims due messages for {@link LEASE_SECONDS}. @param most maximum number @returns `again`: whether to claim again at once */
  claim(most: number): Promise<{ messages: readonly Message[]; again?: boolean }>;

  /** Sends a message once, and records the outcome. @param stop aborts sending: the message must then be released */
  send(message: Message, stop: AbortSignal): Promise<void>;

  /** Called if `send` throws, so the outcome may not be recorded. */
  failed(error: Error): void;
}

/** Claims messages of a queue, and sends them concurrently. */
export class Outbox<Message> {
  readonly #inProgress = new Map<Message, Promise<void>>();
  readonly #stop = new AbortController();
  #claiming: Promise<void> | undefined;
  #claimAgain = false;
  #end: AbortSignal | undefined;

  constructor(private readonly queue: Queue<Message>) {}

  get inProgress(): readonly Message[] {
    return [...this.#inProgress.keys()];
  }

  /** Claims due messages; waits at most {@link MAX_CLAIM_MS} for this to finish. @param end stops claiming */
  async claim(end: AbortSignal): Promise<void> {
    this.#end = end;
    await Promise.race([this.#goOn(), setTimeout(MAX_CLAIM_MS, undefined, { ref: false })]);
  }

  /** Waits for the current claim, then at most {@link LAST_MS} for messages in progress, and aborts those that remain. */
  async close(): Promise<void> {
    await this.#claiming?.catch(() => undefined);
    const all = Promise.all(this.#inProgress.values());
    await Promise.race([all, setTimeout(LAST_MS, undefined, { ref: false })]);
    this.#stop.abort();
    await all;
  }

  #goOn(): Promise<void> {
    this.#claimAgain = true;
    this.#claiming ??= this.#claimAll().finally(() => (this.#claiming = undefined));
    return this.#claiming;
  }

  async #claimAll(): Promise<void> {
    while (this.#claimAgain && !this.#end?.aborted) {
      this.#claimAgain = false;
      const room = MAX_IN_PROGRESS - this.#inProgress.size;
      if (room === 0) return; // each finished message releases a slot and calls this function again
      const { messages, again = false } = await this.queue.claim(room);
      for (const message of messages) this.#begin(message);
      if (again) this.#claimAgain = true;
    }
  }

  #begin(message: Message): void {
    const sending = this.queue
      .send(message, this.#stop.signal)
      .catch((error: unknown) => this.queue.failed(error as Error))
      .finally(() => {
        this.#inProgress.delete(message);
        // The endpoint's next message may now be sent.
        if (!this.#end!.aborted) this.#goOn().catch(() => undefined);
      });
    this.#inProgress.set(message, sending);
  }
}
