import { Injectable } from '@nestjs/common';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { QueryConfig, QueryResultRow } from 'pg';
import { Database } from './database.js';
import type { Reads } from './database.js';
import type { NamedStatement } from './pipelined-reads.js';
import { ANNOUNCE, PrimaryLog, TRUST_MS } from './primary-log.js';
import type { ChannelState, Need, Written } from './primary-log.js';
import { Replica } from './replica.js';
import { Turnstile } from './turnstile.js';
import { Config } from '../config/config.js';

/** How often it is looked how far the replicas are, and that they are replicas still. */
const LOOK_MS = 250;
/** 2^32 divided by the golden ratio (Knuth, The Art of Computer Programming 6.4): ids with a common factor are spread, too. */
const SPREAD = 0x9e3779b1;
/** Long statements at a time on each replica, of the connections of its pool; more are the primary's. */
const LONG_SHARE = 0.2;

/**
 * What members' APIs show, read from replicas where there are any (DATABASE_READ_URL), else from the primary. Nothing else is read
 * here: not who may see it.
 *
 * A member finds what was written of theirs: a replica is asked when it is known to have it. Whatever is unknown, late or broken,
 * the primary is asked; no answer fails for a replica.
 */
@Injectable()
export class MemberReads implements OnModuleInit, OnApplicationShutdown {
  readonly #replicas: readonly Replica[];
  readonly #long: readonly Turnstile[];
  readonly #log: PrimaryLog | undefined;
  /** Who is announced next, and the announcement that takes them along. */
  #whom = new Set<Written>();
  #announcing: Promise<number> | undefined;
  #reads = { primary: 0, replica: 0 };
  #tell: (channel: ChannelState) => void = () => undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(
    private readonly database: Database,
    private readonly config: Config,
  ) {
    this.#replicas = config.databaseReadUrls.map((url) => new Replica(config, url));
    // Who finds no place goes elsewhere at once.
    const places = Math.max(1, Math.floor(config.databasePoolSize * LONG_SHARE));
    this.#long = this.#replicas.map(() => new Turnstile(places, 0, 0));
    if (this.#replicas.length > 0)
      this.#log = new PrimaryLog(config.databaseDirectUrl, (channel) => this.#tell(channel));
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
   * Where to read what a member may see.
   *
   * @param recent whether it is a list that promises what changed since a moment: from no replica that is more than 1.5 s behind
   */
  of(userId: number, { recent = false } = {}): Reads {
    if (this.#log === undefined) return this.database;
    const need = this.#log.needOf(userId, recent);
    if (need === undefined) {
      this.#reads.primary++;
      return this.database;
    }
    return {
      read: (statement, values) =>
        this.config.sqlRequestIds
          ? this.#query(userId, need, { ...statement, values }, false, () =>
              this.database.read(statement, values),
            )
          : this.#read(userId, need, statement, values),
      rows: (text, values) =>
        this.#query(userId, need, { text, values }, false, () => this.database.rows(text, values)),
      long: (statement, values) =>
        this.#query(userId, need, { ...statement, values }, true, () =>
          this.database.long(statement, values),
        ),
    };
  }

  /**
   * Makes certain that nothing older is read of a member, or of all, by any instance, than the primary shows when this is called: who
   * wrote for them, or was told of what changed, finds it.
   *
   * Resolves when every replica has it; or when every instance has heard to ask none that has not: in a quarter of a second at most.
   *
   * @throws what the database throws where it could not be announced: what was written is written, and whoever wrote must not be told
   * so yet
   */
  async advance(whom: Written): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    const position = await this.#announce(whom);
    log.mark(whom, position);
    const latest = performance.now() + TRUST_MS;
    await Promise.all(this.#replicas.map((replica) => replica.reaches(() => log.needFor(position), latest)));
  }

  /** @param listener is told when writes elsewhere are not heard any more, why, and when they are again */
  onChannel(listener: (channel: ChannelState) => void): void {
    this.#tell = listener;
  }

  /** Whether replicas may be asked since writes elsewhere are heard; undefined without replicas. */
  get hearsWrites(): boolean | undefined {
    return this.#log?.trusted;
  }

  /** Reads of members' data, by where they were answered, and how far each replica is behind, in seconds (see {@link Replica.lag}). */
  get reads(): Readonly<Record<'primary' | 'replica', number>> {
    return this.#reads;
  }

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

  /** Several that come together are one statement; one that is under way takes nobody more. @returns the position that covers them */
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

  #read<Row extends QueryResultRow>(
    userId: number,
    need: Need,
    statement: NamedStatement,
    values: unknown[],
  ): Promise<Row[]> {
    for (const index of this.#order(userId)) {
      const replica = this.#replicas[index]!;
      const session = replica.sessionWith(need);
      if (session === undefined) continue;
      let asked = false;
      const primary = () => {
        asked = true;
        return this.#primary(() => this.database.read<Row>(statement, values));
      };
      return replica.rows<Row>(session, statement, values, primary).then((rows) => {
        if (asked) return rows;
        return rows.length === 0 ? primary() : this.#fromReplica(rows);
      });
    }
    return this.#primary(() => this.database.read<Row>(statement, values));
  }

  async #query<Row extends QueryResultRow>(
    userId: number,
    need: Need,
    query: QueryConfig,
    isLong: boolean,
    primary: () => Promise<Row[]>,
  ): Promise<Row[]> {
    for (const index of this.#order(userId)) {
      const ask = () => this.#replicas[index]!.query<Row>(query, need);
      // One that fails has taken its time, and another may, too.
      const rows = await (isLong ? this.#long[index]!.take(ask).catch(() => undefined) : ask());
      if (rows !== undefined) return rows.length === 0 ? this.#primary(primary) : this.#fromReplica(rows);
    }
    return this.#primary(primary);
  }

  /** Each member has a replica that is asked first, so that what they see does not go back and forth; and so do its caches. */
  #order(userId: number): number[] {
    const count = this.#replicas.length;
    const first = (Math.imul(userId, SPREAD) >>> 16) % count;
    return this.#replicas.map((_, index) => (first + index) % count);
  }

  #primary<Row>(read: () => Promise<Row[]>): Promise<Row[]> {
    this.#reads.primary++;
    return read();
  }

  #fromReplica<Row>(rows: Row[]): Row[] {
    this.#reads.replica++;
    return rows;
  }
}
