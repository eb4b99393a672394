import type { DatabaseError } from 'pg';
import { OperatorError } from '../values/operator-error.js';
import type { FaultCode } from './fields.js';
import {
  type Author,
  columnList,
  differs,
  dropStaleSql,
  insertSql,
  isLostRace,
  keepingProfile,
  lockSql,
  NEW_USERS,
  type RecordType,
  recordVersionsSql,
  staged,
  updateSql,
  withPresent,
} from './record-type.js';
import { RECORD_TYPES } from './record-types.js';
import { leaveMembersPending, writePendingMembers } from './pending-members.js';
import { CHUNK_RECORDS, REJECT_COLUMNS, type Staging, StagedRows, stagingColumns } from './staging.js';
import type { ReadLine, RejectsFile, SourceFile } from './sources.js';

const FIRST_REJECTS = 100;
const SHOWN_FAULTS = 10;
const ATTEMPTS = 5;

/** PostgreSQL's error codes for violated NOT NULL and CHECK constraints: a retry would also fail. */
const BROKEN_RULE = /^(23502|23514)$/;

export interface Portion {
  /** Index of the file in the source. */
  readonly position: number;
  readonly lines: readonly ReadLine[];
}

export type Portions = Iterable<Portion> | AsyncIterable<Portion>;

export interface Reject {
  readonly file: string;
  readonly line: number;
  /** Path to the value: names, joined by dots; empty for the whole line. */
  readonly path: string;
  readonly code: FaultCode;
  readonly reason: string;
}

/** A reject from the staging table, with the index of its file and its encoded text. */
type StagedReject = Reject & { readonly position: number; readonly text: string };

const OUTCOMES = ['read', 'inserted', 'updated', 'deleted', 'unchanged', 'rejected'] as const;

/** `stale`: lines without effect, since the same or a later version is stored; absent if there are none. */
export type RecordCounts = Record<(typeof OUTCOMES)[number], number> & { stale?: number };

/** Makes counts that are all zero. */
export const noCounts = () => Object.fromEntries(OUTCOMES.map((name) => [name, 0])) as RecordCounts;

/** Adds counts to a sum. */
export function addCounts(sum: RecordCounts, more: Partial<RecordCounts>): void {
  for (const key of Object.keys(more) as (keyof RecordCounts)[])
    sum[key] = (sum[key] ?? 0) + (more[key] ?? 0);
}

interface SetOptions {
  readonly dryRun?: boolean | undefined;
  readonly keepProfile?: boolean | undefined;
  readonly progress?: ((now: { readonly phase: string }) => void) | undefined;
  /**
   * Author of a feed. The caller deduplicates a feed's lines, and retries after a lost race; existing members change at once.
   * Undefined for an import, which leaves most changes of existing members to `settleMembers`.
   */
  readonly feedBy?: Author | undefined;
}

/** Stages, checks and writes lines in the caller's transaction. The staging tables must exist. */
export class ImportSet {
  /** Counts by record type; for lines without a type, by the file's name. */
  readonly counts = new Map<string, RecordCounts>();
  firstRejects: readonly Reject[] = [];
  /** Types with lines, referenced types first. */
  #types: readonly RecordType[] = [];
  /** Index of a type's file in the source, by the type's name. */
  readonly #positions = new Map<string, number>();
  #versioned: readonly RecordType[] = [];
  #deleting: readonly RecordType[] = [];
  /** Types with a line that a later line replaces. */
  #replaced: readonly RecordType[] = [];
  /** By type: whether {@link RecordType.referred} columns of stored rows change. */
  readonly #referred = new Map<RecordType, boolean>();
  #lostRaces = 0;

  constructor(
    private readonly staging: Staging,
    private readonly files: readonly Pick<SourceFile, 'name'>[],
    private readonly options: SetOptions,
  ) {}

  /** @returns whether it has written the lines @throws OperatorError, for example after too many lost races */
  async run(portions: Portions, rejects?: RejectsFile): Promise<boolean> {
    const { dryRun = false, feedBy, progress } = this.options;
    const before = rejects?.size;
    await this.#stage(portions, rejects !== undefined);
    for (;;) {
      progress?.({ phase: 'checking' });
      if (!feedBy)
        for (const type of this.#versioned) {
          const stale = await this.staging.number(dropStaleSql(type));
          if (stale > 0) addCounts(this.#countsOf(type.name), { stale });
        }
      await this.#check();
      // Reads the rejects before the write, whose row locks make other writers wait.
      this.firstRejects = this.rejected > 0 ? await this.#rejects(FIRST_REJECTS) : [];
      rejects?.rewind(before!);
      if (rejects) await this.#writeRejects(rejects);
      const writes = !dryRun && (this.rejected === 0 || rejects !== undefined);
      if (writes) {
        progress?.({ phase: 'writing' });
        if (!(await this.#tryToWrite())) continue;
      } else {
        for (const type of this.#types) await this.#compare(type);
        for (const type of this.#deleting)
          this.#count(type, {
            deleted: await this.staging.number(`SELECT count(*) AS n FROM (${type.removal.rows}) r`),
          });
      }
      for (const counts of this.counts.values()) {
        const { read, inserted, updated, deleted, rejected, stale = 0 } = counts;
        counts.unchanged = read - inserted - updated - deleted - rejected - stale;
      }
      return writes;
    }
  }

  async #stage(portions: Portions, keepsText: boolean): Promise<void> {
    const rowsFor = (table: string, columns: string) => new StagedRows(this.staging, table, columns);
    const rows = new Map(
      RECORD_TYPES.map((type) => [type, rowsFor(staged(type.name), stagingColumns(type))]),
    );
    const bad = rowsFor('import_rejects', REJECT_COLUMNS);
    const [versioned, deleting, replaced] = [new Set<string>(), new Set<string>(), new Set<string>()];
    for await (const { position, lines } of portions) {
      for (const { type, number: line, row, faults, text } of lines) {
        const name = type?.name ?? this.files[position]!.name;
        this.#countsOf(name).read++;
        if (type) this.#positions.set(type.name, position);
        const kept = keepsText ? { text: encode(text) } : {};
        if (row) {
          await rows.get(type!)!.add({ line, ...kept, ...row });
          if (row.version !== undefined) versioned.add(type!.name);
          if (row.deleted) deleting.add(type!.name);
          if (row.counts === false) replaced.add(type!.name);
        } else {
          const { path, code } = faults![0]!;
          const reason = faults!.slice(0, SHOWN_FAULTS).join('; ');
          await bad.add({ file: position, type: name, line, path, code, reason, ...kept });
          this.#countsOf(name).rejected++;
        }
      }
    }
    for (const chunks of [...rows.values(), bad]) await chunks.flush();
    for (const name of this.#positions.keys()) await this.#analyze(staged(name));
    const types = this.options.keepProfile ? RECORD_TYPES.map(keepingProfile) : RECORD_TYPES;
    this.#types = types.filter(({ name }) => this.#positions.has(name));
    this.#versioned = types.filter(({ name }) => versioned.has(name));
    this.#deleting = types.filter(({ name }) => deleting.has(name));
    this.#replaced = types.filter(({ name }) => replaced.has(name));
  }

  #countsOf(name: string): RecordCounts {
    let counts = this.counts.get(name);
    if (!counts) this.counts.set(name, (counts = noCounts()));
    return counts;
  }

  /** Collects statistics of the staged rows, unless the statements are prepared and their plans are reused. */
  async #analyze(table: string): Promise<void> {
    if (!this.staging.isPrepared) await this.staging.manager.query(`ANALYZE ${table}`);
  }

  async #check(): Promise<void> {
    for (const type of this.#types) {
      if (this.#replaced.includes(type)) {
        await this.#applyRules(type, type.references);
        await this.staging.rows(`DELETE FROM ${staged(type.name)} WHERE counts IS FALSE`);
      }
      await this.#applyRules(type, [...type.references, ...type.rules]);
    }
  }

  get rejected(): number {
    return [...this.counts.values()].reduce((sum, { rejected }) => sum + rejected, 0);
  }

  /** Rejects the type's records that break a rule; repeats this, since a rejection can make further records invalid. */
  async #applyRules(
    type: RecordType,
    rules: readonly string[],
    values: readonly number[] = [],
  ): Promise<void> {
    if (rules.length === 0) return;
    const broken = rules
      .map((rule, i) => `SELECT line, code, reason, ${i} AS rule FROM (${rule}) r (line, code, reason)`)
      .join(' UNION ALL ');
    for (let fell = Infinity; fell > 0;) {
      // A rule's reason starts with the field's name, or with "record".
      fell = await this.staging.number(
        `WITH broken AS (
  SELECT line, (array_agg(code ORDER BY rule, reason))[1] AS code, string_agg(reason, '; ' ORDER BY rule, reason) AS reason
  FROM (${broken}) AS broken GROUP BY line),
gone AS (DELETE FROM ${staged(type.name)} s USING broken WHERE s.line = broken.line RETURNING s.line, broken.code, broken.reason, s.text),
noted AS (INSERT INTO import_rejects
  SELECT ${this.#positions.get(type.name)}, '${type.name}', line,
    regexp_replace('record.' || substring(reason FROM '^[\\w.]+'), '^record\\.record$', 'record'), code, reason, text
  FROM gone RETURNING 1)
SELECT count(*) AS n FROM noted`,
        [...values],
      );
      this.#countsOf(type.name).rejected += fell;
    }
  }

  async #compare(type: RecordType): Promise<void> {
    const isNew = `t.${type.key[0]!} IS NULL`;
    const changes = (columns?: readonly string[]) =>
      `count(*) FILTER (WHERE NOT (${isNew}) AND ${differs(type, columns)})`;
    const [row] = await this.staging.rows<{ inserted: number; updated: number; referred: number }>(
      `SELECT count(*) FILTER (WHERE ${isNew}) AS inserted, ${changes()} AS updated,
  ${type.referred ? changes(type.referred) : 0} AS referred
FROM ${withPresent(type)}`,
    );
    const { inserted, updated, referred } = row!;
    this.#count(type, { inserted, updated });
    this.#referred.set(type, referred > 0);
  }

  #count(type: RecordType, rows: Partial<RecordCounts>): void {
    const counts = this.#countsOf(type.name);
    for (const [outcome, number] of Object.entries(rows) as [keyof RecordCounts, number][])
      counts[outcome] = Math.ceil(number / type.rowsPerRecord);
  }

  /** Writes the lines. @returns false if a lost race, or a record that the database rejects, caused a rollback: check and write again */
  async #tryToWrite(): Promise<boolean> {
    const { feedBy, keepProfile = false } = this.options;
    await this.staging.manager.query('SAVEPOINT checked');
    try {
      for (const type of this.#versioned)
        if ((await this.staging.number(recordVersionsSql(type))) > 0)
          throw Object.assign(new Error('the same or a later version is already stored'), { code: '40001' });
      if (this.#types.some(({ name }) => name === 'users'))
        await writePendingMembers(this.staging, `user_id IN (SELECT id FROM ${staged('users')})`);
      if (feedBy) for (const lock of lockSql(this.#types)) await this.staging.rows(lock);
      // Deletes rows first, to release unique values. Soft-deletes and erases later: other lines may refer to these records or write them.
      const ending = this.#deleting.filter(({ removal }) => removal.ends ?? removal.remove);
      for (const type of this.#deleting) if (!ending.includes(type)) await this.#remove(type);
      for (const type of this.#types) await this.#compare(type);
      if (this.counts.get('users')?.inserted) {
        await this.staging.rows(
          `INSERT INTO ${NEW_USERS} SELECT id FROM ${staged('users')} s
WHERE NOT s.deleted AND NOT EXISTS (SELECT FROM users t WHERE t.id = s.id)`,
        );
        await this.#analyze(NEW_USERS);
      }
      if (!feedBy && this.counts.get('users')?.updated)
        await leaveMembersPending(this.staging.manager, keepProfile);
      for (const type of this.#types) await this.#writeNew(type);
      // Updates members last: until then, members can usually edit their profiles.
      for (const type of this.#types.toReversed()) {
        if (this.#countsOf(type.name).updated > 0)
          for (const update of updateSql(type, this.#referred.get(type))) await this.staging.rows(update);
        if (ending.includes(type)) await this.#remove(type);
      }
      return true;
    } catch (error) {
      const isBroken = BROKEN_RULE.test(String((error as { code?: string }).code));
      if (!isBroken && (feedBy || !isLostRace(error))) throw error;
      if (!isBroken && ++this.#lostRaces === ATTEMPTS)
        throw new OperatorError(
          `Nothing was imported: in each of ${ATTEMPTS} attempts, other writers changed the same rows (${(error as Error).message}). Import again later`,
          { cause: error },
        );
      await this.staging.manager.query('ROLLBACK TO SAVEPOINT checked');
      if (isBroken)
        await this.#rejectBroken(
          (error as { driverError?: DatabaseError }).driverError ?? (error as DatabaseError),
        );
      return false;
    }
  }

  /** Rejects the line whose row violates a constraint of the database. */
  async #rejectBroken(error: DatabaseError): Promise<void> {
    const { table, constraint, column, detail } = error;
    const type = this.#types.find(({ name }) => name === table || staged(`changed_${name}`) === table);
    // "Failing row contains (5, 7, …)": values in the order of the columns; the first columns are numeric keys.
    const row = /\((\d.*)/.exec(detail ?? '')?.[1]?.split(', ');
    if (!type || !row)
      throw new OperatorError(`The database rejects a record (${error.message}): correct the record`, {
        cause: error,
      });
    const columns = await this.staging.rows<{ name: string }>(
      `SELECT attname AS name FROM pg_attribute
WHERE attrelid = '${type.name}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    );
    const key = type.key.map((column) =>
      Number.parseInt(row[columns.findIndex(({ name }) => name === column)]!),
    );
    const isRow = type.key.map((column, i) => `s.${column} = $${i + 1}`);
    const why = `record: violates the database rule ${constraint ?? `that ${column} is required`}`;
    const rule = `SELECT s.line, 'invalid_value', '${why.replaceAll("'", "''")}' FROM ${type.source} WHERE ${isRow.join(' AND ')}`;
    await this.#applyRules(type, [rule], key);
  }

  async #remove(type: RecordType): Promise<void> {
    const { rows, ends, remove } = type.removal;
    const key = columnList(type.key, 't');
    // Locks in key order, so that concurrent removals do not deadlock.
    const locked = await this.staging.rows<{ id: number }>(
      `SELECT ${key} FROM ${type.name} t WHERE (${key}) IN (${rows}) ORDER BY ${key} FOR ${ends ? 'NO KEY UPDATE' : 'UPDATE'}`,
    );
    if (remove) {
      const ids = locked.map(({ id }) => id);
      await remove(this.staging.manager, ids, this.options.feedBy ?? { actor: 'admin' });
    } else if (locked.length > 0) {
      const set = Object.entries(ends ?? {}).map(([column, sql]) => `${column} = ${sql}`);
      const done = ends ? `UPDATE ${type.name} t SET ${set.join(', ')}` : `DELETE FROM ${type.name} t`;
      await this.staging.rows(`${done} WHERE (${key}) IN (${rows})`);
    }
    this.#count(type, { deleted: locked.length });
  }

  async #writeNew(type: RecordType): Promise<void> {
    const { inserted, updated } = this.#countsOf(type.name);
    const changes = type.referred ? this.#referred.get(type) : updated > 0;
    const releases = type.release && (changes || this.#deleting.includes(type)) ? type.release : [];
    for (const release of releases) await this.staging.rows(release);
    // Also after a release, which can delete rows that must be inserted again.
    if (inserted === 0 && releases.length === 0) return;
    await this.staging.rows(insertSql(type));
    if ('id' in type.fields) {
      const sequence = `${type.name}_id_seq`;
      await this.staging.rows(
        `SELECT setval('${sequence}', last) FROM (SELECT max(id) AS last FROM ${staged(type.name)} WHERE NOT deleted) s
WHERE last >= (SELECT last_value FROM ${sequence})`,
      );
    }
  }

  async #writeRejects(rejects: RejectsFile): Promise<void> {
    for (let rows = await this.#rejects(CHUNK_RECORDS); rows.length > 0;) {
      rejects.write(rows.map((row) => ({ ...row, text: decode(row.text) })));
      rows = await this.#rejects(CHUNK_RECORDS, rows.at(-1));
    }
  }

  async #rejects(limit: number, after?: StagedReject): Promise<StagedReject[]> {
    const rows = await this.staging.rows<Omit<StagedReject, 'file'>>(
      `SELECT file AS position, line, path, code, reason, text FROM import_rejects
WHERE (file, line) > ($1, $2) ORDER BY file, line LIMIT $3`,
      [after?.position ?? -1, after?.line ?? 0, limit],
    );
    return rows.map((row) => ({ ...row, file: this.files[row.position]!.name }));
  }
}

/** Base64, since a line may contain U+0000, which PostgreSQL cannot store in a text. */
const encode = (text: string) => Buffer.from(text).toString('base64');
const decode = (text: string) => Buffer.from(text, 'base64').toString();
