import { setTimeout } from 'node:timers/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { CURRENT_KIND, kindFrom, type HashKind } from './passwords.js';
import { randomBytes } from '../../crypto/random.js';

/**
 * Multiple of the time of the most expensive hash: an imported one is computed twice if the password's NFKC form differs from what
 * was typed, and each computation may take half as long again as measured.
 */
const MOST_HASHES = 3;

/** How soon an import by any process is noticed. */
const CHECK_MS = 10_000;

/** The maximum share of one processor's time that measuring takes. */
const MEASURING_SHARE = 0.03;

/** The longest of this many measurements counts, because the load of the processors changes quickly. */
const RECENT = 3;

/** More kinds than any platform has. */
const MOST_KINDS = 1_000;

/** Finds each kind once, with one index look-up per kind, however many members there are. */
export const IMPORTED_KINDS = `WITH RECURSIVE kinds AS (
  (SELECT imported_hash_kind(password_hash) AS kind FROM users
    WHERE imported_hash_kind(password_hash) IS NOT NULL ORDER BY 1 LIMIT 1)
  UNION ALL
  SELECT (SELECT imported_hash_kind(password_hash) FROM users
    WHERE imported_hash_kind(password_hash) IS NOT NULL AND imported_hash_kind(password_hash) > kinds.kind ORDER BY 1 LIMIT 1)
  FROM kinds WHERE kinds.kind IS NOT NULL
) SELECT kind FROM kinds WHERE kind IS NOT NULL LIMIT ${MOST_KINDS}`;

/**
 * How long a refusal takes: as long for a name that nobody has as for the member whose hash is the most expensive of all that are
 * stored; otherwise, timing would reveal who has an imported one. Imported hashes have their own costs, so this is measured:
 * the most expensive kind of each algorithm is computed in the background when the server starts, when an import has changed it,
 * and from time to time while passwords are refused, since busy processors take longer. It never depends on the hash of an account
 * that somebody tried, which would reveal something about it.
 */
@Injectable()
export class RefusalTime implements OnModuleInit {
  /** Of the dearest kind of each algorithm: the latest times that it took, by algorithm and work. */
  #measured: ReadonlyMap<string, readonly number[]> = new Map();
  #checkedAt = Number.NEGATIVE_INFINITY;
  #measureAgainAt = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly config: Config,
  ) {}

  onModuleInit(): void {
    this.#check().catch(() => undefined); // the first refusal tries again
  }

  /**
   * Waits until a refusal may be answered.
   *
   * @param startedAt when hashing began, as performance.now() tells it
   * @throws what the database throws
   */
  async waitFrom(startedAt: number): Promise<void> {
    if (performance.now() - this.#checkedAt > CHECK_MS) await this.#check();
    const dearest = Math.max(...[...this.#measured.values()].flat());
    const whole = Math.max(this.config.shortestRefusal, dearest * MOST_HASHES);
    await setTimeout(Math.max(0, startedAt + whole - performance.now()));
  }

  #check(): Promise<void> {
    return (this.#checking ??= this.#measureDearest().finally(() => (this.#checking = undefined)));
  }

  async #measureDearest(): Promise<void> {
    const rows = await this.database.rows<{ kind: string }>(IMPORTED_KINDS, []);
    const kinds = [CURRENT_KIND, ...rows.flatMap(({ kind }) => kindFrom(kind) ?? [])];
    const startedAt = performance.now();
    const again = startedAt > this.#measureAgainAt;
    const measured = new Map<string, readonly number[]>();
    for (const ofAlgorithm of Map.groupBy(kinds, ({ algorithm }) => algorithm).values()) {
      const dearest = ofAlgorithm.reduce((one, other) => (other.work > one.work ? other : one));
      const name = `${dearest.algorithm} ${dearest.work}`;
      const known = this.#measured.get(name) ?? [];
      const isKnown = known.length > 0 && !again;
      measured.set(name, isKnown ? known : [await timeOf(dearest), ...known].slice(0, RECENT));
    }
    this.#measured = measured;
    const now = performance.now();
    if (again) this.#measureAgainAt = now + (now - startedAt) / MEASURING_SHARE;
    this.#checkedAt = now;
  }
}

async function timeOf(kind: HashKind): Promise<number> {
  const startedAt = performance.now();
  await kind.hash(randomBytes(24).toString('base64url'));
  return performance.now() - startedAt;
}
