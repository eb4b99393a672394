import { Readable } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { Database } from '../database/database.js';
import { sha256 } from '../crypto/digests.js';
import { MemberReads } from '../database/member-reads.js';
import { FEEDS_AT_ONCE, keepsSessions } from '../database/postgres/data-source.js';
import { Semaphore } from '../database/postgres/semaphore.js';
import { Unavailable } from '../database/postgres/unavailable.js';
import { makeReader } from '../model/response.js';
import { pointerTo, Problem } from '../http/output/problems.js';
import { isLostRace } from '../import/record-type.js';
import { addCounts, ImportSet, noCounts } from '../import/import-set.js';
import { createStaging, keepStaging, STAGED_PLANS, Staging } from '../import/staging.js';
import { OperatorError } from '../values/operator-error.js';
import { settle } from '../import/settled-lines.js';
import { readFeedLine, readLines, type ReadLine } from '../import/sources.js';
import { learnTimeZones } from '../import/time-zones.js';
import { FeedCounts } from './feed.dto.js';

export const MAX_FEED_BYTES = 8 * 1024 * 1024;
const MAX_LINES = 5_000;
/** Bytes to parse before other requests can run. */
const PIECE_BYTES = 65_536;

/** Maximum lines for which the feed reuses prepared plans: planning would take longer than execution. */
const FEW_LINES = 100;

/** Maximum number of queued feeds, and their maximum wait in ms. */
const MAX_WAITING = 64;
const WAIT_MS = 10_000;
/** Time in ms by which a feed extends its request's deadline. */
export const FEED_PATIENCE_MS = 30_000;

/** Maximum attempts of a feed while other transactions change the same rows. */
const ATTEMPTS = 5;
const MAX_PAUSE_MS = 100;

interface Feed {
  readonly keyId: string;
  readonly lines: readonly ReadLine[];
  readonly body: Buffer;
  readonly idempotencyKey: string | undefined;
}

/** Applies the platform's feeds by the rules of the import, two at a time, on connections that requests do not use. */
@Injectable()
export class FeedService {
  readonly #slots = new Semaphore(FEEDS_AT_ONCE, MAX_WAITING, WAIT_MS);

  constructor(
    private readonly database: Database,
    private readonly reads: MemberReads,
  ) {}

  /** Applies all lines in order, or none. @param confirm rejects if the caller's key is no longer valid @throws Problem, Unavailable */
  async feed(
    keyId: string,
    body: Buffer,
    idempotencyKey: string | undefined,
    confirm: () => Promise<void>,
  ): Promise<FeedCounts> {
    const counts = await this.#slots.take(async () => {
      const dataSource = await this.database.background('feeding');
      await learnTimeZones(dataSource);
      const feed: Feed = { keyId, lines: await readFeed(body), body, idempotencyKey };
      for (let attempt = 1; ; attempt++) {
        await confirm();
        try {
          return await this.#write(dataSource, feed, confirm);
        } catch (error) {
          if (!isLostRace(error))
            throw error instanceof OperatorError
              ? new Problem('validation_failed', { detail: error.message, errors: [], cause: error })
              : error;
          if (attempt === ATTEMPTS)
            throw new Unavailable('other requests kept changing the rows of a feed', {
              cause: error,
            });
          await setTimeout(Math.random() * MAX_PAUSE_MS * attempt);
        }
      }
    });
    await this.reads.advance('all');
    return counts;
  }

  async #write(dataSource: DataSource, feed: Feed, confirm: () => Promise<void>): Promise<FeedCounts> {
    const { lines, idempotencyKey } = feed;
    const types = [...new Set(lines.flatMap(({ type }) => type ?? []))];
    const keepsTables = keepsSessions(dataSource.manager);
    const runner = dataSource.createQueryRunner();
    try {
      if (keepsTables) await keepStaging(runner, types);
      // Bypasses dataSource.transaction, which would add its own retries.
      return await runner.manager.transaction(async (manager) => {
        if (!keepsTables) await createStaging(manager, types);
        const staging = new Staging(manager, keepsTables && lines.length <= FEW_LINES);
        if (!staging.isPrepared) await manager.query(STAGED_PLANS);
        const counts = await (idempotencyKey === undefined
          ? write(staging, feed)
          : writeOnce(staging, feed, idempotencyKey));
        // The feed may have waited for locked rows; not in the embedded database, whose only connection this transaction has.
        if (keepsTables) await confirm();
        return counts;
      });
    } finally {
      await runner.release();
    }
  }
}

async function readFeed(body: Buffer): Promise<ReadLine[]> {
  const lines: ReadLine[] = [];
  for await (const read of readLines(Readable.from(piecesOf(body)), 'feed')) {
    lines.push(...read.map(readFeedLine));
    if (lines.length > MAX_LINES)
      throw new Problem('payload_too_large', { detail: `The feed has over ${MAX_LINES} lines: split it.` });
    await setImmediate(); // lets other requests run
  }
  return lines;
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; start += PIECE_BYTES)
    yield body.subarray(start, start + PIECE_BYTES);
}

/** @throws Problem idempotency_conflict if the key was used for another body */
async function writeOnce(staging: Staging, feed: Feed, idempotencyKey: string): Promise<FeedCounts> {
  const { keyId, body } = feed;
  const bodyHash = Buffer.from(sha256(body, 'hex'), 'hex');
  // The second of two concurrent requests waits here for the outcome of the first request.
  const first = await staging.rows(
    `INSERT INTO idempotent_responses AS r (key_id, idempotency_key, body_hash, response) VALUES ($1, $2, $3, '{}')
ON CONFLICT (key_id, idempotency_key) DO UPDATE SET body_hash = EXCLUDED.body_hash, created_at = now()
  WHERE r.created_at < now() - interval '24 hours' RETURNING 1`,
    [keyId, idempotencyKey, bodyHash],
  );
  if (first.length === 0) {
    const [answered] = await staging.rows<{ body_hash: Buffer; response: FeedCounts }>(
      'SELECT body_hash, response FROM idempotent_responses WHERE key_id = $1 AND idempotency_key = $2',
      [keyId, idempotencyKey],
    );
    if (!answered?.body_hash.equals(bodyHash)) throw new Problem('idempotency_conflict');
    return makeReader(FeedCounts)(answered.response); // jsonb does not keep the key order of the first response
  }
  const counts = await write(staging, feed);
  await staging.rows(
    'UPDATE idempotent_responses SET response = $3 WHERE key_id = $1 AND idempotency_key = $2',
    [keyId, idempotencyKey, JSON.stringify(counts)],
  );
  return counts;
}

async function write(staging: Staging, { keyId, lines }: Feed): Promise<FeedCounts> {
  const settled = await settle(staging, lines);
  const set = new ImportSet(staging, [{ name: 'feed' }], { feedBy: { actor: 'client', keyId } });
  if (!(await set.run([{ position: 0, lines: settled.lines }])))
    throw new Problem('validation_failed', {
      count: set.rejected,
      errors: set.firstRejects.map(({ line, path, code, reason }) => ({
        line,
        pointer: pointerTo(path.split('.').filter(Boolean)),
        code,
        detail: reason,
      })),
    });
  const sum = noCounts();
  for (const counts of set.counts.values()) addCounts(sum, counts);
  const { inserted: created, updated, deleted } = sum;
  const [received, { stale }] = [lines.length, settled];
  return {
    received,
    created,
    updated,
    deleted,
    unchanged: received - created - updated - deleted - stale,
    stale,
  };
}
