import type { DataSource, QueryRunner } from 'typeorm';
import { audited, recordEvent } from '../../audit/audit.js';
import { OperatorError } from '../../values/operator-error.js';
import { settleMembers } from './pending-members.js';
import { beginImport } from './staging.js';
import { ImportSet, noCounts, type Portion, type Reject, type RecordCounts } from './import-set.js';
import { RECORD_TYPES } from './record-types.js';
import { RejectsFile } from './rejects-file.js';
import { recordKeys, type ReadLine, type Source } from './sources.js';

const SHOWN_REJECTS = 20;
type ShownReject = Pick<Reject, 'file' | 'line' | 'reason'>;

export interface ImportOptions {
  /** Compares with the database, and changes nothing. */
  readonly dryRun?: boolean | undefined;
  /** File for bad lines; without it, one bad line stops everything. */
  readonly rejectsFile?: string | undefined;
  /** How many lines are written and committed together; all of them if not given. */
  readonly batch?: number | undefined;
  /** Leaves the fields of the profile that members set through the API as they are. */
  readonly keepProfile?: boolean | undefined;
  /** Cancels the run: what is not committed is undone. */
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((now: ImportProgress) => void) | undefined;
}

/** How far an import has come: what it reads, or, when everything has been read, what it does. */
export type ImportProgress =
  { readonly file: string; readonly bytes: number; readonly records: number } | { readonly phase: string };

/** A position in the input. */
interface SourceLine {
  readonly file: string;
  readonly line: number;
}

export interface ImportReport {
  /** false: bad lines stopped it, or it was a dry run. */
  readonly imported: boolean;
  /** By type of record; lines without one are under `-`. */
  readonly files: Readonly<Record<string, RecordCounts>>;
  readonly rejected: number;
  /** The first of them, in the order of the files. */
  readonly firstRejects: readonly ShownReject[];
  /** Files in the folder that do not belong to an import. */
  readonly ignored: readonly string[];
  /** For an import in batches, the line up to which everything is committed; null if nothing is. */
  readonly committed_through?: SourceLine | null;
}

/**
 * Imports a source (docs/import.md): every line is staged and checked in temporary tables, then written with a few
 * statements per table, all in one transaction, or one transaction for each batch.
 *
 * @throws OperatorError if the source cannot be read, another import is running, or the run was cancelled
 */
export async function importRecords(
  dataSource: DataSource,
  source: Source,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const rejects =
    options.rejectsFile === undefined ? undefined : new RejectsFile(options.rejectsFile, source);
  try {
    await settleMembers(dataSource); // of an import that was killed
    const run = new ImportRun(dataSource, source, options, rejects);
    const report = options.batch === undefined ? await run.whole() : await run.inBatches(options.batch);
    await foldTotals(dataSource);
    rejects?.complete();
    return report;
  } finally {
    rejects?.discard();
  }
}

/** Folds the counts into the totals at once, so that rarities are right when the import reports success. */
async function foldTotals(dataSource: DataSource): Promise<void> {
  for (let folded = Infinity; folded > 0;) {
    const [row] = await dataSource.query<{ folded: number }[]>('SELECT fold_totals($1) AS folded', [100_000]);
    folded = row!.folded;
  }
}

class ImportRun {
  readonly #counts = new Map<string, RecordCounts>(RECORD_TYPES.map(({ name }) => [name, noCounts()]));
  readonly #firstRejects: ShownReject[] = [];
  #rejected = 0;
  #committedThrough: SourceLine | null = null;

  constructor(
    private readonly dataSource: DataSource,
    private readonly source: Source,
    private readonly options: ImportOptions,
    private readonly rejects: RejectsFile | undefined,
  ) {}

  /** All or nothing. */
  async whole(): Promise<ImportReport> {
    const imported = await this.#transaction((set) => set.run(this.#portions(), this.rejects));
    await settleMembers(this.dataSource, this.options.signal);
    return this.#report(imported);
  }

  /** Batches of at most `size` lines, in order; a record that occurs again begins a new batch. */
  async inBatches(size: number): Promise<ImportReport> {
    let imported = true;
    try {
      for await (const portion of this.#batches(size)) {
        imported = await this.#transaction((set) => set.run([portion], this.rejects));
        if (imported)
          this.#committedThrough = {
            file: this.source.files[portion.position]!.name,
            line: portion.lines.at(-1)!.number,
          };
        else if (!this.options.dryRun) break;
        await settleMembers(this.dataSource, this.options.signal);
      }
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      const through = this.#committedThrough;
      const done = through
        ? `Everything up to line ${through.line} of ${through.file} is imported, and nothing after it: go on there, or run it again as a whole`
        : 'Nothing was imported';
      const why = error.message.replace(/: nothing was imported/, '');
      throw new OperatorError(`${why}. ${done}`, { cause: error });
    }
    return { ...this.#report(imported), committed_through: this.#committedThrough };
  }

  #report(imported: boolean): ImportReport {
    return {
      imported,
      files: Object.fromEntries(this.#counts),
      rejected: this.#rejected,
      firstRejects: this.#firstRejects,
      ignored: this.source.ignored,
    };
  }

  /** @param work returns whether it has written; otherwise the transaction is rolled back */
  async #transaction(work: (set: ImportSet) => Promise<boolean>): Promise<boolean> {
    const { signal } = this.options;
    const runner = this.dataSource.createQueryRunner();
    let stop = () => {};
    try {
      await runner.startTransaction();
      stop = await cancelOn(signal, this.dataSource, runner);
      await beginImport(runner.manager);
      const set = new ImportSet(runner.manager, this.source, { ...this.options, membersLater: true });
      const written = await work(set);
      signal?.throwIfAborted();
      if (written) {
        await recordImport(set);
        await runner.commitTransaction();
      } else await runner.rollbackTransaction();
      this.#add(set);
      return written;
    } catch (error) {
      if (runner.isTransactionActive) await runner.rollbackTransaction().catch(() => undefined);
      if (signal?.aborted)
        throw new OperatorError('The import was cancelled: nothing was imported', { cause: error });
      throw error;
    } finally {
      stop();
      await runner.release();
    }
  }

  #add(set: ImportSet): void {
    for (const [name, counts] of set.counts) {
      const sum = this.#counts.get(name) ?? noCounts();
      for (const key of Object.keys(counts) as (keyof RecordCounts)[])
        sum[key] = (sum[key] ?? 0) + (counts[key] ?? 0);
      this.#counts.set(name, sum);
    }
    this.#rejected += set.rejected;
    for (const { file, line, reason } of set.firstRejects.slice(0, SHOWN_REJECTS - this.#firstRejects.length))
      this.#firstRejects.push({ file, line, reason });
  }

  async *#portions(): AsyncGenerator<Portion> {
    const { progress, signal } = this.options;
    let [bytes, records] = [0, 0];
    for (const [position, file] of this.source.files.entries()) {
      for await (const lines of file.lines((more) => (bytes += more))) {
        signal?.throwIfAborted();
        records += lines.length;
        progress?.({ file: file.name, bytes, records });
        yield { position, lines };
      }
    }
  }

  async *#batches(size: number): AsyncGenerator<Portion> {
    let position = 0;
    let lines: ReadLine[] = [];
    const seen = new Set<string>();
    const take = (): Portion => {
      const portion = { position, lines };
      lines = [];
      seen.clear();
      return portion;
    };
    for await (const portion of this.#portions()) {
      if (portion.position !== position && lines.length > 0) yield take();
      position = portion.position;
      for (const line of portion.lines) {
        const keys = recordKeys(line);
        if (lines.length >= size || keys.some((key) => seen.has(key))) yield take();
        lines.push(line);
        for (const key of keys) seen.add(key);
      }
    }
    if (lines.length > 0) yield take();
  }
}

async function recordImport({ manager, counts }: ImportSet): Promise<void> {
  const changed = [...counts].filter(
    ([, { inserted, updated, deleted }]) => inserted + updated + deleted > 0,
  );
  if (changed.length === 0) return;
  const details = Object.fromEntries(changed);
  await audited(manager, (transaction) =>
    recordEvent(transaction, { type: 'platform.imported', actor: 'admin', details }),
  );
}

/** Cancels the current statement of `runner` when `signal` aborts. @returns a function that stops listening */
async function cancelOn(
  signal: AbortSignal | undefined,
  dataSource: DataSource,
  runner: QueryRunner,
): Promise<() => void> {
  if (!signal) return () => {};
  const [{ pid }] = (await runner.query('SELECT pg_backend_pid() AS pid')) as [{ pid: number }];
  const cancel = () => void dataSource.query('SELECT pg_cancel_backend($1)', [pid]).catch(() => undefined);
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel);
  return () => signal.removeEventListener('abort', cancel);
}
