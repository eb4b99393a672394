import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Database, type Reads } from './database.js';
import { ANNOUNCE, PrimaryWal, TRUST_MS, type Written } from './replicas/primary-wal.js';
import { Replica } from './replicas/replica.js';
import { Config } from '../config/config.js';

const LOOK_MS = 250;
/** Prime near 2^32 divided by the golden ratio (Knuth, The Art of Computer Programming 6.4): also spreads ids with a common factor. */
const SPREAD = 0x9e3779b1;

/** The primary, or a replica; a replica's reads resolve with undefined if another server must serve them. */
type Askable = Pick<Replica, 'read' | 'rows' | 'long'>;
type Ask<Row> = (server: Askable) => Promise<Row[] | undefined>;

/** Reads from a replica (DATABASE_READ_URL) that has the member's announced writes, or from the primary if no replica returns rows. */
@Injectable()
export class MemberReads implements OnModuleInit, OnApplicationShutdown {
  readonly #replicas: readonly Replica[];
  #whom = new Set<Written>();
  #announcing: Promise<number> | undefined;
  readonly reads = { primary: 0, replica: 0 };
  #watch: NodeJS.Timeout | undefined;

  constructor(
    private readonly database: Database,
    private readonly log: PrimaryWal,
    config: Config,
  ) {
    this.#replicas = config.databaseReadUrls.map((url) => new Replica(config, url));
  }

  onModuleInit(): void {
    if (this.#replicas.length > 0) this.#watch = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#watch);
    await Promise.all(this.#replicas.map((replica) => replica.end()));
  }

  /** Chooses where to read. @param recent excludes replicas that lag more than 1.5 s, for lists that promise all changes since a time */
  of(userId: number, { recent = false } = {}): Reads {
    if (this.#replicas.length === 0) return this.database;
    const need = this.log.needOf(userId, recent);
    if (need === undefined) {
      this.reads.primary++;
      return this.database;
    }
    const read = <Row>(ask: Ask<Row>) => this.#read(userId, ask);
    return {
      read: (statement, values) => read((server) => server.read(statement, values, need)),
      rows: (text, values) => read((server) => server.rows(text, values, need)),
      long: (statement, values) => read((server) => server.long(statement, values, need)),
    };
  }

  /**
   * Announces a write to the data of one or all members, and waits up to 250 ms for the replicas: then no instance reads older data.
   * @throws database errors if the announcement failed: the data is written, but instances may still read older data
   */
  async advance(whom: Written): Promise<void> {
    if (this.#replicas.length === 0) return;
    const position = await this.#announce(whom);
    this.log.mark(whom, position);
    const latest = performance.now() + TRUST_MS;
    const need = () => this.log.needFor(position);
    await Promise.all(this.#replicas.map((replica) => replica.reaches(need, latest)));
  }

  /** Whether notifications of other instances' writes arrive, so that replicas may be used; undefined without replicas. */
  get hearsWrites(): boolean | undefined {
    return this.#replicas.length === 0 ? undefined : this.log.trusted;
  }

  /** Lag of each replica in seconds (see {@link Replica.lag}); Infinity while the primary's position is unknown. */
  async lags(): Promise<number[]> {
    const { position } = this.log;
    const need = position === undefined ? undefined : this.log.needFor(position);
    return need
      ? Promise.all(this.#replicas.map((replica) => replica.lag(need)))
      : this.#replicas.map(() => Infinity);
  }

  #look(): void {
    const need = this.log.needFor(0);
    if (need) for (const replica of this.#replicas) replica.look(need);
  }

  /** Batches concurrent announcements into one statement. @returns the position that includes all their writes */
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

  async #read<Row>(userId: number, ask: Ask<Row>): Promise<Row[]> {
    for (const replica of this.#inOrder(userId)) {
      const rows = await ask(replica);
      if (rows === undefined) continue;
      if (rows.length === 0) break; // perhaps because of a failure: the primary serves this read
      this.reads.replica++;
      return rows;
    }
    this.reads.primary++;
    return (await ask(this.database))!;
  }

  /** Returns the replicas, the member's preferred one first, for consistent views and warm caches. */
  #inOrder(userId: number): readonly Replica[] {
    const first = (Math.imul(userId, SPREAD) >>> 16) % this.#replicas.length;
    return [...this.#replicas.slice(first), ...this.#replicas.slice(0, first)];
  }
}
