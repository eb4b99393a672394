import { setTimeout } from 'node:timers/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { CURRENT_KIND, kindFrom, type HashKind } from './passwords.js';
import { randomBytes } from '../../crypto/random.js';

/** Delay in multiples of the most expensive hash's time: enough for two hashes (NFKC and typed form) that are 50 % slower. */
const MAX_HASHES = 3;

/** Minimum interval in ms between checks for imported hashes. */
const CHECK_MS = 10_000;

/** Maximum share of one processor for repeated measurements. */
const MEASURING_SHARE = 0.03;

/** Number of recent measurements. The longest counts, because the load changes quickly. */
const RECENT = 3;

/** Maximum kinds of imported hashes to read. */
const MAX_KINDS = 1_000;

/** Finds the kinds of imported hashes, with one index lookup per kind. */
export const IMPORTED_KINDS = `WITH RECURSIVE kinds AS (
  (SELECT imported_hash_kind(password_hash) AS kind FROM users
    WHERE imported_hash_kind(password_hash) IS NOT NULL ORDER BY 1 LIMIT 1)
  UNION ALL
  SELECT (SELECT imported_hash_kind(password_hash) FROM users
    WHERE imported_hash_kind(password_hash) IS NOT NULL AND imported_hash_kind(password_hash) > kinds.kind ORDER BY 1 LIMIT 1)
  FROM kinds WHERE kinds.kind IS NOT NULL
) SELECT kind FROM kinds WHERE kind IS NOT NULL LIMIT ${MAX_KINDS}`;

/**
 * Delays the response to each failed password check to a multiple of the most expensive hash's time, so that timing reveals neither missing
 * names nor imported hashes. The measurements do not depend on the requested account.
 */
@Injectable()
export class RefusalTime implements OnModuleInit {
  /** Latest hashing times in ms of each algorithm's most expensive kind, by algorithm and work. */
  #measured: ReadonlyMap<string, readonly number[]> = new Map();
  #checkedAt = Number.NEGATIVE_INFINITY;
  #measureAgainAt = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly config: Config,
  ) {}

  onModuleInit(): void {
    this.#check().catch(() => undefined); // the first rejection retries
  }

  /** Waits until a rejection may be sent. @param startedAt performance.now() when hashing began @throws database errors */
  async waitFrom(startedAt: number): Promise<void> {
    if (performance.now() - this.#checkedAt > CHECK_MS) await this.#check();
    const dearest = Math.max(...[...this.#measured.values()].flat());
    const whole = Math.max(this.config.shortestRefusal, dearest * MAX_HASHES);
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
      measured.set(name, isKnown ? known : [await measure(dearest), ...known].slice(0, RECENT));
    }
    this.#measured = measured;
    const now = performance.now();
    if (again) this.#measureAgainAt = now + (now - startedAt) / MEASURING_SHARE;
    this.#checkedAt = now;
  }
}

async function measure(kind: HashKind): Promise<number> {
  const startedAt = performance.now();
  await kind.hash(randomBytes(24).toString('base64url'));
  return performance.now() - startedAt;
}
