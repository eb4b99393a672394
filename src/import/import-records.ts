import type { DataSource, EntityManager } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import { OperatorError } from '../values/operator-error.js';
import { settleMembers } from './pending-members.js';
import { beginImport, Staging } from './staging.js';
import {
  addCounts,
  ImportSet,
  noCounts,
  type Portion,
  type Portions,
  type RecordCounts,
  type Reject,
} from './import-set.js';
import { RECORD_TYPES } from './record-types.js';
import { readLines, recordKeys, RejectsFile, type ReadLine, type Source } from './sources.js';
import { learnTimeZones } from './time-zones.js';

const SHOWN_REJECTS = 20;

export interface ImportOptions {
  readonly dryRun?: boolean | undefined;
  /** File for bad lines; without this file, a bad line stops the import. */
  readonly rejectsFile?: string | undefined;
  /** Maximum number of lines per transaction; default: all lines. Not for a dry run. */
  readonly batch?: number | undefined;
  /** Keeps profile fields that members set through the API. */
  readonly keepProfile?: boolean | undefined;
  /** Cancels the run, and rolls back uncommitted work. */
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((now: ImportProgress) => void) | undefined;
}

export type ImportProgress =
  { readonly file: string; readonly bytes: number; readonly records: number } | { readonly phase: string };

interface SourceLine {
  readonly file: string;
  readonly line: number;
}

export interface ImportReport {
  /** false after a dry run, or if bad lines stopped the import. */
  imported: boolean;
  /** Counts by record type; `-` for lines without a type. */
  readonly files: Record<string, RecordCounts>;
  rejected: number;
  readonly firstRejects: Pick<Reject, 'file' | 'line' | 'reason'>[];
  readonly ignored: readonly string[];
  /** Last committed line, or null if there is none; undefined without batches. */
  committed_through: SourceLine | null | undefined;
}

/** Imports a source at once or in batches. @throws OperatorError, for example if the source is unreadable or the import is canceled */
export async function importRecords(
  dataSource: DataSource,
  source: Source,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const rejects =
    options.rejectsFile === undefined ? undefined : new RejectsFile(options.rejectsFile, source);
  try {
    await settleMembers(dataSource); // writes pending changes of a killed import
    await learnTimeZones(dataSource);
    const run = new ImportRun(dataSource, source, options, rejects);
    await run.run();
    await foldTotals(dataSource);
    rejects?.complete();
    return run.report;
  } finally {
    rejects?.discard();
  }
}

/** Compacts the counter deltas at once, instead of waiting for the periodic job. */
async function foldTotals(dataSource: DataSource): Promise<void> {
  for (let folded = Infinity; folded > 0;) {
    const [row] = await dataSource.query<{ folded: number }[]>('SELECT fold_totals($1) AS folded', [100_000]);
    folded = row!.folded;
  }
}

class ImportRun {
  readonly report: ImportReport;

  constructor(
    private readonly dataSource: DataSource,
    private readonly source: Source,
    private readonly options: ImportOptions,
    private readonly rejects: RejectsFile | undefined,
  ) {
    this.report = {
      imported: true,
      files: Object.fromEntries(RECORD_TYPES.map(({ name }) => [name, noCounts()])),
      rejected: 0,
      firstRejects: [],
      ignored: source.ignored,
      committed_through: options.batch === undefined ? undefined : null,
    };
  }

  async run(): Promise<void> {
    const { report } = this;
    const { batch } = this.options;
    const whole = { portions: this.#portions(), last: undefined };
    try {
      for await (const { portions, last } of batch === undefined ? [whole] : this.#batches(batch)) {
        report.imported = await this.#write(portions);
        if (!report.imported) break;
        report.committed_through = last;
        await settleMembers(this.dataSource, this.options.signal);
      }
    } catch (error) {
      const through = report.committed_through;
      if (!(error instanceof OperatorError) || through === undefined) throw error;
      const done = through
        ? `Everything up to line ${through.line} of ${through.file} is imported, and nothing after it: continue there, or run the whole import again`
        : 'Nothing was imported';
      const why = error.message.replace(/: nothing was imported/, '');
      throw new OperatorError(`${why}. ${done}`, { cause: error });
    }
  }

  /** Writes and commits the lines. @returns false after a dry run, or if bad lines stopped the import */
  async #write(portions: Portions): Promise<boolean> {
    const { dataSource, options } = this;
    const { signal } = options;
    let cancel = () => {};
    try {
      // Bypasses dataSource.transaction, which retries after deadlocks: the lines can be read only once.
      return await dataSource.manager.transaction(async (manager) => {
        const [{ pid }] = await manager.query<[{ pid: number }]>('SELECT pg_backend_pid() AS pid');
        cancel = () => void dataSource.query('SELECT pg_cancel_backend($1)', [pid]).catch(() => undefined);
        signal?.addEventListener('abort', cancel);
        signal?.throwIfAborted();
        await beginImport(manager);
        const set = new ImportSet(new Staging(manager), this.source.files, options);
        const written = await set.run(portions, this.rejects);
        signal?.throwIfAborted();
        if (written) await recordImport(manager, set);
        this.#add(set);
        return written; // if false, needs no rollback: the staging tables end with the transaction
      });
    } catch (error) {
      if (!signal?.aborted) throw error;
      throw new OperatorError('The import was canceled: nothing was imported', { cause: error });
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  #add(set: ImportSet): void {
    const { files, firstRejects } = this.report;
    for (const [name, counts] of set.counts) addCounts((files[name] ??= noCounts()), counts);
    this.report.rejected += set.rejected;
    for (const { file, line, reason } of set.firstRejects.slice(0, SHOWN_REJECTS - firstRejects.length))
      firstRejects.push({ file, line, reason });
  }

  async *#portions(): AsyncGenerator<Portion> {
    const { progress, signal } = this.options;
    let [bytes, records] = [0, 0];
    for (const [position, { name, open, read }] of this.source.files.entries()) {
      const stream = open().on('data', (chunk: Buffer) => (bytes += chunk.length));
      for await (const lines of readLines(stream, name)) {
        signal?.throwIfAborted();
        records += lines.length;
        progress?.({ file: name, bytes, records });
        yield { position, lines: lines.map(read) };
      }
    }
  }

  /** Yields batches in order, each with its last line. A batch comes from one file and contains at most one line per record. */
  async *#batches(size: number): AsyncGenerator<{ portions: Portions; last: SourceLine }> {
    let position = 0;
    let lines: ReadLine[] = [];
    const seen = new Set<string>();
    const taken = () => ({
      portions: [{ position, lines }],
      last: { file: this.source.files[position]!.name, line: lines.at(-1)!.number },
    });
    for await (const portion of this.#portions())
      for (const line of portion.lines) {
        const keys = recordKeys(line);
        const isFull = portion.position !== position || lines.length >= size;
        if (lines.length > 0 && (isFull || keys.some((key) => seen.has(key)))) {
          yield taken();
          lines = [];
          seen.clear();
        }
        position = portion.position;
        lines.push(line);
        for (const key of keys) seen.add(key);
      }
    if (lines.length > 0) yield taken();
  }
}

async function recordImport(manager: EntityManager, { counts }: ImportSet): Promise<void> {
  const changed = [...counts].filter(
    ([, { inserted, updated, deleted }]) => inserted + updated + deleted > 0,
  );
  if (changed.length === 0) return;
  const details = Object.fromEntries(changed);
  await audited(manager, (transaction) =>
    recordEvent(transaction, { type: 'platform.imported', actor: 'admin', details }),
  );
}
