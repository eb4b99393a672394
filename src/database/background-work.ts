import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';

/**
 * Background work in the database: repeated from the server's start to its end, with a pause between runs. Failures in a row are
 * logged once; the work is retried after the pause.
 */
export abstract class BackgroundWork implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #failing = false;
  #ended = false;

  /**
   * @param pauseMs between the end of one run and the start of the next
   * @param failure log message when a run fails
   */
  constructor(
    protected readonly logger: Pick<Logger, 'warn'>,
    private readonly pauseMs: number,
    private readonly failure: string,
  ) {}

  /** One run. Between steps it checks {@link ended}, and stops if it is set. */
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
