import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { QueryConfig } from 'pg';
import { Database, type Reads } from './database.js';
import { ANNOUNCE, PrimaryWal, TRUST_MS, type ChannelState, type Written } from './replicas/primary-wal.js';
import { Replica } from './replicas/replica.js';
import { Semaphore } from './postgres/semaphore.js';
import { Config } from '../config/config.js';

/** How often the replicas' positions are checked, and whether they still are replicas. */
const LOOK_MS = 250;
/** 2^32 divided by the golden ratio (Knuth, The Art of Computer Programming 6.4): also spreads ids with a common factor. */
const SPREAD = 0x9e3779b1;
/** How many connections of each replica's pool long statements may use; more go to the primary. */
const LONG_SHARE = 0.2;

/**
 * Reads members' data from replicas if there are any (DATABASE_READ_URL), otherwise from the primary. It reads nothing
 * else; in particular, authorization is never read from a replica.
 *
 * Members always see what was written for them: a replica is used only if it is known to have it. If anything is unknown, late or
 * broken, the primary is used; no read fails because of a replica.
 */
@Injectable()
export class MemberReads implements OnModuleInit, OnApplicationShutdown {
  readonly #replicas: readonly Replica[];
  /** Of each replica. */
  readonly #long: readonly Semaphore[];
  readonly #log: PrimaryWal | undefined;
  /** The members of the next announcement, and that announcement. */
  #whom = new Set<Written>();
  #announcing: Promise<number> | undefined;
  /** Numbers of reads of members' data, by the server that answered them. */
  readonly reads = { primary: 0, replica: 0 };
  #tell: (channel: ChannelState) => void = () => undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(
    private readonly database: Database,
    config: Config,
  ) {
    this.#replicas = config.databaseReadUrls.map((url) => new Replica(config, url));
    // Without a free place, the read goes to the primary at once.
    const places = Math.max(1, Math.floor(config.databasePoolSize * LONG_SHARE));
    this.#long = this.#replicas.map(() => new Semaphore(places, 0, 0));
    if (this.#replicas.length > 0)
      this.#log = new PrimaryWal(config.databaseDirectUrl, (channel) => this.#tell(channel));
  }

  onModuleInit(): void {
    if (this.#log === undefined) return;
    this.#log.onModuleInit();
    this.#watch = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#watch);
    await this.#log?.onApplicationShutdown();
    await Promise.all(this.#replicas.map((replica) => replica.end()));
  }

  /**
   * Chooses where to read a member's data.
   *
   * @param recent whether the list promises all changes since a time: then no replica more than 1.5 s behind is used
   */
  of(userId: number, { recent = false } = {}): Reads {
    if (this.#log === undefined) return this.database;
    const need = this.#log.needOf(userId, recent);
    if (need === undefined) {
      this.reads.primary++;
      return this.database;
    }
    return {
      read: (statement, values) =>
        this.#read(
          userId,
          (replica) => replica.read(statement, values, need),
          () => this.database.read(statement, values),
        ),
      rows: (text, values) =>
        this.#read(
          userId,
          (replica) => replica.query({ text, values }, need),
          () => this.database.rows(text, values),
        ),
      long: <Row>(statement: QueryConfig, values: unknown[]) =>
        this.#read<Row>(
          userId,
          (replica, long) =>
            long.take(() => replica.query<Row>({ ...statement, values }, need)).catch(() => undefined),
          () => this.database.long(statement, values),
        ),
    };
  }

  /**
   * Ensures that no instance reads data of a member, or of all, older than the primary has at the time of this call: a writer, or a
   * caller notified of a change, then sees that change.
   *
   * Resolves when every replica has it, or when every instance knows not to use those that do not: in a quarter of a second at
   * most.
   *
   * @throws what the database throws if the announcement failed: the data is written, but success must not be reported yet
   */
  async advance(whom: Written): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    const position = await this.#announce(whom);
    log.mark(whom, position);
    const latest = performance.now() + TRUST_MS;
    await Promise.all(this.#replicas.map((replica) => replica.reaches(() => log.needFor(position), latest)));
  }

  /** @param listener is called when notifications of writes elsewhere stop arriving, with the reason, and when they arrive again */
  onChannel(listener: (channel: ChannelState) => void): void {
    this.#tell = listener;
  }

  /** Whether replicas may be used because notifications of writes elsewhere arrive; undefined without replicas. */
  get hearsWrites(): boolean | undefined {
    return this.#log?.trusted;
  }

  /** How far each replica is behind, in seconds (see {@link Replica.lag}). */
  async lags(): Promise<number[]> {
    const position = this.#log?.position;
    const need = position === undefined ? undefined : this.#log?.needFor(position);
    return need
      ? Promise.all(this.#replicas.map((replica) => replica.lag(need)))
      : this.#replicas.map(() => Infinity);
  }

  #look(): void {
    const need = this.#log?.needFor(0);
    if (need) for (const replica of this.#replicas) replica.look(need);
  }

  /** Batches concurrent announcements into one statement; one under way takes no more. @returns the position that covers them */
  #announce(whom: Written): Promise<number> {
    this.#whom.add(whom);
    this.#announcing ??= new Promise((resolve) => setImmediate(resolve)).then(async () => {
      const all = [...this.#whom].join();
      this.#whom = new Set();
      this.#announcing = undefined;
      const rows = await this.database.read<{ position: number }>(ANNOUNCE, [all]);
      return Math.max(...rows.map(({ position }) => position));
    });
    return this.#announcing;
  }

  /** @param ask resolves with undefined where that replica was not asked, and with no rows where it failed: the primary is asked then, too */
  async #read<Row>(
    userId: number,
    ask: (replica: Replica, long: Semaphore) => Promise<Row[] | undefined>,
    primary: () => Promise<Row[]>,
  ): Promise<Row[]> {
    for (const index of this.#order(userId)) {
      const rows = await ask(this.#replicas[index]!, this.#long[index]!);
      if (rows === undefined) continue;
      if (rows.length === 0) break;
      this.reads.replica++;
      return rows;
    }
    this.reads.primary++;
    return primary();
  }

  /** Each member has a preferred replica, so what they see does not jump between versions, and its caches are used well. */
  #order(userId: number): number[] {
    const count = this.#replicas.length;
    const first = (Math.imul(userId, SPREAD) >>> 16) % count;
    return this.#replicas.map((_, index) => (first + index) % count);
  }
}
