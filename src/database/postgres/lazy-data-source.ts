import type { DataSource } from 'typeorm';
import type { Config } from '../../config/config.js';
import { createDataSource, type DataSourceUse } from './data-source.js';

/** Connections that are opened when they are first needed: the database may be away at the start, and most instances never need some. */
export class LazyDataSource {
  #opened: Promise<DataSource> | undefined;

  constructor(
    private readonly config: Config,
    private readonly use: DataSourceUse,
  ) {}

  /** Opens it, unless it is open; what failed is tried again by the next who asks. */
  open(): Promise<DataSource> {
    this.#opened ??= createDataSource(this.config, this.use)
      .initialize()
      .catch((error: unknown) => {
        this.#opened = undefined;
        throw error;
      });
    return this.#opened;
  }

  async close(): Promise<void> {
    await (await this.#opened?.catch(() => undefined))?.destroy();
  }
}
