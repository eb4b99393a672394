import { once } from 'node:events';
import { createWriteStream, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { DataSource, EntityManager } from 'typeorm';
import { AuthEvent } from '../../database/entities/auth-event.entity.js';
import { Refusal } from '../../database/refusal.js';
import { readRecord, stagingColumns } from './fields.js';
import { readLines } from './lines.js';
import type { Line } from './lines.js';
import { RECORD_TYPES, staged } from './record-types.js';
import type { RecordType } from './record-types.js';

/** Of the staging: large enough to be fast, small enough to stay flat. */
const BATCH_RECORDS = 4_000;
const BATCH_CHARACTERS = 4_000_000;
const SHOWN_REJECTS = 20;
/** Held by a run until its end. */
const IMPORT_LOCK = 7_862_013_002;
const ATTEMPTS = 5;

/** PostgreSQL, appendix A. */
const DEADLOCK = '40P01';
const INTEGRITY_CLASS = '23';

export interface ImportOptions {
  /** Compares with the database, and changes nothing. */
  readonly dryRun?: boolean;
  /** Where bad lines go; without it, one bad line stops everything. */
  readonly rejectsFile?: string;
  readonly progress?: ImportProgress;
}

export interface ImportProgress {
  /** Bytes of all files together. */
  begin(bytes: number): void;
  read(bytes: number): void;
  /** All is read; what happens now. */
  phase(name: string): void;
}

export interface Reject {
  /** As it stands in the folder, `users.ndjson`. */
  readonly file: string;
  readonly line: number;
  readonly reason: string;
}

export interface FileReport {
  read: number;
  inserted: number;
  updated: number;
  unchanged: number;
  rejected: number;
}

export interface ImportReport {
  /** false: bad lines stopped it, or it was a dry run. */
  readonly imported: boolean;
  readonly files: Readonly<Record<string, FileReport>>;
  readonly rejected: number;
  /** The first of them, in the order of the files. */
  readonly firstRejects: readonly Reject[];
  /** What stands in the folder and is no file of an import. */
  readonly ignored: readonly string[];
}

interface InputFile {
  readonly name: string;
  readonly path: string;
  readonly type: RecordType;
  /** In {@link RECORD_TYPES}. */
  readonly position: number;
}

/**
 * Imports a folder of NDJSON files (docs/import.md), all of it or nothing: every record is staged and checked in
 * temporary tables, then written with one statement a table, in one transaction.
 *
 * @throws Refusal where the folder or a file cannot be read, or another import runs
 */
export async function importFolder(
  dataSource: DataSource,
  folder: string,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const { files, ignored } = findFiles(folder);
  if (options.rejectsFile !== undefined) refuseOverwriting(options.rejectsFile, files);
  const runner = dataSource.createQueryRunner();
  try {
    await runner.startTransaction();
    try {
      await alone(runner.manager);
      const run = new ImportRun(runner.manager, files, options);
      const report = { ...(await run.run()), ignored };
      if (report.imported) await runner.commitTransaction();
      else await runner.rollbackTransaction();
      if (options.rejectsFile !== undefined) renameSync(draftOf(options.rejectsFile), options.rejectsFile);
      return report;
    } catch (error) {
      if (runner.isTransactionActive) await runner.rollbackTransaction();
      throw error;
    }
  } finally {
    if (options.rejectsFile !== undefined) rmSync(draftOf(options.rejectsFile), { force: true });
    await runner.release();
  }
}

class ImportRun {
  readonly #reports = new Map<RecordType, FileReport>();

  constructor(
    private readonly manager: EntityManager,
    private readonly files: readonly InputFile[],
    private readonly options: ImportOptions,
  ) {}

  async run(): Promise<Omit<ImportReport, 'ignored'>> {
    const { dryRun = false, rejectsFile, progress } = this.options;
    await this.#createStaging();
    progress?.begin(this.files.reduce((bytes, { path }) => bytes + statSync(path).size, 0));
    for (const file of this.files) await this.#stage(file);

    progress?.phase('checking');
    for (const type of RECORD_TYPES) await this.manager.query(`ANALYZE ${staged(type.name)}`);
    for (const file of this.files) await this.#applyRules(file);
    const rejected = await this.#countRejects();
    for (const { type } of this.files) await this.#compare(type);

    const goOn = rejected === 0 || rejectsFile !== undefined;
    if (rejectsFile !== undefined) await this.#writeRejects(draftOf(rejectsFile));
    if (goOn && !dryRun) {
      progress?.phase('writing');
      await this.#writeAll();
    }
    return {
      imported: goOn && !dryRun,
      files: Object.fromEntries(RECORD_TYPES.map((type) => [type.name, this.#report(type)])),
      rejected,
      firstRejects: await this.#rejectsAfter(-1, 0, SHOWN_REJECTS),
    };
  }

  #report(type: RecordType): FileReport {
    const report = this.#reports.get(type) ?? { read: 0, inserted: 0, updated: 0, unchanged: 0, rejected: 0 };
    this.#reports.set(type, report);
    return report;
  }

  async #createStaging(): Promise<void> {
    // Waits of a server are bounded; an import takes as long as it takes.
    await this.manager.query(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL work_mem = '64MB'`);
    for (const type of RECORD_TYPES) {
      const columns = columnsOf(type).map(([name, sql]) => `${name} ${sql}`);
      await this.manager.query(
        `CREATE TEMP TABLE ${staged(type.name)} (line integer NOT NULL, ${columns.join(', ')}) ON COMMIT DROP`,
      );
    }
    await this.manager.query(
      'CREATE TEMP TABLE import_rejects (file integer NOT NULL, line integer NOT NULL, reason text NOT NULL) ON COMMIT DROP',
    );
  }

  /** Reads a file into its staging table; lines that are wrong in themselves become rejects. */
  async #stage(file: InputFile): Promise<void> {
    const { type } = file;
    const columns = columnsOf(type);
    const names = ['line', ...columns.map(([name]) => name)].join(', ');
    const insert = `INSERT INTO ${staged(type.name)} (${names}) SELECT ${names} FROM jsonb_to_recordset($1::jsonb)
AS r (line integer, ${columns.map(([name, sql]) => `${name} ${sql}`).join(', ')})`;
    const rows = new Batch((json) => this.manager.query(insert, [json]));
    const rejects = new Batch((json) =>
      this.manager.query(
        `INSERT INTO import_rejects SELECT ${file.position}, line, reason
FROM jsonb_to_recordset($1::jsonb) AS r (line integer, reason text)`,
        [json],
      ),
    );
    const report = this.#report(type);
    for await (const lines of readLines(file.path, (bytes) => this.options.progress?.read(bytes))) {
      for (const line of lines) {
        report.read++;
        const { row, reason } = readLine(type, line);
        if (reason === undefined) await rows.add({ line: line.number, ...row });
        else await rejects.add({ line: line.number, reason });
      }
    }
    await rows.flush();
    await rejects.flush();
  }

  /** Takes out what other records or the database rule out, until nothing falls that others relied on. */
  async #applyRules({ type, position }: InputFile): Promise<void> {
    const broken = type.rules.map((rule) => `(${rule})`).join(' UNION ALL ');
    for (let fell = Infinity; fell > 0;) {
      const [row] = await this.manager.query<{ fell: number }[]>(
        `WITH broken (line, reason) AS (${broken}),
gone AS (DELETE FROM ${staged(type.name)} WHERE line IN (SELECT line FROM broken)),
noted AS (INSERT INTO import_rejects SELECT ${position}, line, string_agg(reason, '; ') FROM broken GROUP BY line RETURNING 1)
SELECT count(*) AS fell FROM noted`,
      );
      fell = row!.fell;
    }
  }

  async #countRejects(): Promise<number> {
    const rows = await this.manager.query<{ file: number; rejected: number }[]>(
      'SELECT file, count(*) AS rejected FROM import_rejects GROUP BY file',
    );
    for (const { file, rejected } of rows) this.#report(RECORD_TYPES[file]!).rejected = rejected;
    return rows.reduce((sum, { rejected }) => sum + rejected, 0);
  }

  /** Counts what a write would do. */
  async #compare(type: RecordType): Promise<void> {
    const isNew = `t.${type.key[0]!} IS NULL`;
    const [row] = await this.manager.query<{ inserted: number; updated: number; all: number }[]>(
      `SELECT count(*) FILTER (WHERE ${isNew}) AS inserted, count(*) AS all,
  count(*) FILTER (WHERE NOT (${isNew}) AND ${differs(type)}) AS updated
FROM ${withPresent(type)}`,
    );
    const report = this.#report(type);
    report.inserted = Math.ceil(row!.inserted / type.rowsPerRecord);
    report.updated = Math.ceil(row!.updated / type.rowsPerRecord);
    report.unchanged = row!.all / type.rowsPerRecord - report.inserted - report.updated;
  }

  /** Members go on meanwhile. Where both wait for each other, this lets go of what it has locked, and tries again. */
  async #writeAll(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      await this.manager.query('SAVEPOINT written');
      try {
        for (const { type } of this.files) await this.#write(type);
        return await this.#audit();
      } catch (error) {
        const { code } = error as { code?: string };
        if (code === DEADLOCK && attempt < ATTEMPTS)
          await this.manager.query('ROLLBACK TO SAVEPOINT written');
        else if (code?.startsWith(INTEGRITY_CLASS) || code === DEADLOCK)
          throw new Refusal(
            `The platform changed what the import was writing (${(error as Error).message}): nothing was imported, run it again`,
            { cause: error },
          );
        else throw error;
      }
    }
  }

  async #write(type: RecordType): Promise<void> {
    const { inserted, updated } = this.#report(type);
    if (updated > 0 && type.release) await this.manager.query(type.release);
    if (inserted + updated > 0) await this.manager.query(upsert(type));
    if (type.sequence) {
      await this.manager.query(
        `SELECT setval('${type.sequence}', last) FROM (SELECT max(id) AS last FROM ${staged(type.name)}) s
WHERE last >= (SELECT last_value FROM ${type.sequence})`,
      );
    }
  }

  async #audit(): Promise<void> {
    const changed = [...this.#reports].filter(([, { inserted, updated }]) => inserted + updated > 0);
    if (changed.length === 0) return;
    const details = Object.fromEntries(changed.map(([{ name }, report]) => [name, report]));
    await this.manager.insert(AuthEvent, {
      type: 'platform.imported',
      actor: 'admin',
      details: details as never,
    });
  }

  /** The next rejects in the order of the files. */
  async #rejectsAfter(position: number, line: number, limit: number): Promise<Reject[]> {
    const rows = await this.manager.query<{ file: number; line: number; reason: string }[]>(
      `SELECT file, line, reason FROM import_rejects WHERE (file, line) > ($1, $2) ORDER BY file, line LIMIT ${limit}`,
      [position, line],
    );
    return rows.map(({ file, ...reject }) => ({ file: this.#fileAt(file).name, ...reject }));
  }

  #fileAt(position: number): InputFile {
    return this.files.find((file) => file.position === position)!;
  }

  /** NDJSON {file, line, reason, record}: the files are read once more, for the records are kept nowhere. */
  async #writeRejects(path: string): Promise<void> {
    const output = createWriteStream(path, { mode: 0o600, flags: 'w' });
    const failed = once(output, 'error').then(([error]) => {
      throw new Refusal(`${path} cannot be written (${(error as Error).message}): nothing was imported`);
    });
    failed.catch(() => undefined);
    const write = async (): Promise<void> => {
      for (const file of this.files) {
        if (this.#report(file.type).rejected === 0) continue;
        let rejects = await this.#rejectsAfter(file.position, 0, BATCH_RECORDS);
        for await (const lines of readLines(file.path, () => undefined)) {
          for (const line of lines) {
            if (rejects[0]?.line !== line.number || rejects[0].file !== file.name) continue;
            const { reason } = rejects.shift()!;
            const head = JSON.stringify({ file: file.name, line: line.number, reason }).slice(0, -1);
            if (!output.write(`${head},"record":${recordOf(line)}}\n`)) await once(output, 'drain');
            if (rejects.length === 0)
              rejects = await this.#rejectsAfter(file.position, line.number, BATCH_RECORDS);
          }
        }
      }
      output.end();
      await once(output, 'close');
    };
    await Promise.race([write(), failed]);
  }
}

/** Gathers records, and hands them on as one JSON array. The next ones are read while the database takes them. */
class Batch {
  #records: string[] = [];
  #characters = 0;
  #taking: Promise<unknown> = Promise.resolve();

  constructor(private readonly take: (json: string) => Promise<unknown>) {}

  async add(record: object): Promise<void> {
    const json = JSON.stringify(record);
    this.#records.push(json);
    this.#characters += json.length;
    if (this.#records.length >= BATCH_RECORDS || this.#characters >= BATCH_CHARACTERS) await this.#handOn();
  }

  async flush(): Promise<void> {
    await this.#handOn();
    await this.#taking;
  }

  async #handOn(): Promise<void> {
    await this.#taking;
    if (this.#records.length === 0) return;
    this.#taking = this.take(`[${this.#records.join(',')}]`);
    this.#taking.catch(() => undefined); // told to whoever waits for it next
    this.#records = [];
    this.#characters = 0;
  }
}

function readLine(
  type: RecordType,
  { text, fault }: Line,
): { row?: Record<string, unknown>; reason?: string } {
  if (fault !== undefined) return { reason: fault };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { reason: 'is not JSON' };
  }
  const { row, faults } = readRecord(type.fields, value);
  const together = type.check?.(row);
  const reasons = together === undefined ? faults : [...faults, together];
  if (reasons.length > 0) return { reason: reasons.slice(0, 10).join('; ') };
  type.complete?.(row, value as Record<string, unknown>);
  return { row };
}

/** The record as it stands in the file; what is no JSON, as a JSON string. */
function recordOf({ text, fault }: Line): string {
  try {
    if (fault === undefined) {
      JSON.parse(text);
      return text.trim();
    }
  } catch {
    // a string then
  }
  return JSON.stringify(text);
}

function columnsOf(type: RecordType): readonly (readonly [string, string])[] {
  return [...stagingColumns(type.fields), ...(type.extraColumns ?? [])];
}

/** Staged rows `s` with what is there, `t`. */
function withPresent({ source, name, key }: RecordType): string {
  return `${source} LEFT JOIN ${name} t ON ${key.map((column) => `t.${column} = s.${column}`).join(' AND ')}`;
}

function differs({ values, compared }: RecordType): string {
  const columns = Object.keys(values);
  const wanted = columns.map((column) => compared?.[column] ?? values[column]!);
  return `(${wanted.join(', ')}) IS DISTINCT FROM (${columns.map((column) => `t.${column}`).join(', ')})`;
}

function upsert(type: RecordType): string {
  const columns = Object.keys(type.values);
  const changing = columns.filter((column) => !type.key.includes(column));
  return `INSERT INTO ${type.name} (${columns.join(', ')})
SELECT ${Object.values(type.values).join(', ')} FROM ${withPresent(type)} ${type.joins ?? ''}
WHERE t.${type.key[0]!} IS NULL OR ${differs(type)} ORDER BY ${type.key.map((column) => `s.${column}`).join(', ')}
ON CONFLICT (${type.key.join(', ')}) DO UPDATE SET ${changing.map((column) => `${column} = EXCLUDED.${column}`).join(', ')}`;
}

/** @throws Refusal where the folder is not there, or has a file in both forms */
function findFiles(folder: string): { files: InputFile[]; ignored: string[] } {
  let names: string[];
  try {
    names = readdirSync(folder).toSorted();
  } catch (error) {
    throw new Refusal(
      `The folder ${folder} cannot be read (${(error as NodeJS.ErrnoException).code}): name a folder of NDJSON files`,
      { cause: error },
    );
  }
  const files = RECORD_TYPES.flatMap((type, position) => {
    const present = [`${type.name}.ndjson`, `${type.name}.ndjson.gz`].filter((name) => names.includes(name));
    if (present.length > 1)
      throw new Refusal(`${folder} has both ${present.join(' and ')}: take one of them away`);
    return present.map((name) => ({ name, path: join(folder, name), type, position }));
  });
  return { files, ignored: names.filter((name) => !files.some((file) => file.name === name)) };
}

function refuseOverwriting(rejectsFile: string, files: readonly InputFile[]): void {
  if (files.some(({ path }) => resolve(path) === resolve(rejectsFile)))
    throw new Refusal(`${rejectsFile} is a file of the import itself: write the rejects elsewhere`);
  if (existsSync(rejectsFile) && !statSync(rejectsFile).isFile())
    throw new Refusal(`${rejectsFile} is not a file: name one for the rejects`);
}

/** What the rejects are written to until all is done. */
function draftOf(rejectsFile: string): string {
  return `${rejectsFile}.${process.pid}`;
}

async function alone(manager: EntityManager): Promise<void> {
  const [row] = await manager.query<{ free: boolean }[]>('SELECT pg_try_advisory_xact_lock($1) AS free', [
    IMPORT_LOCK,
  ]);
  if (!row!.free) throw new Refusal('Another import is running: wait until it has ended');
}
