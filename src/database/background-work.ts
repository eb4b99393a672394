import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';

/**
 * Work in the database beside requests: from the start of the server on, again and again with a pause between, until it ends.
 * What it fails at is told once for failures in a row, and tried again after the pause.
 */
export abstract class BackgroundWork implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #failing = false;
  #ended = false;

  /**
   * @param pauseMs between the end of one run and the start of the next
   * @param failure what the log says where a run fails
   */
  constructor(
    protected readonly logger: Pick<Logger, 'warn'>,
    private readonly pauseMs: number,
    private readonly failure: string,
  ) {}

  /** One run. Of several steps it does no further one once {@link ended}. */
  protected abstract work(): Promise<unknown>;

  protected get ended(): boolean {
    return this.#ended;
  }

  onApplicationBootstrap(): void {
    this.#running = this.#workOrTell().then(() => {
      if (!this.#ended) this.#timer = setTimeout(() => this.onApplicationBootstrap(), this.pauseMs).unref();
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #workOrTell(): Promise<void> {
    try {
      await this.work();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.logger.warn({ reason: (error as Error).message }, this.failure);
      this.#failing = true;
    }
  }
}
