import type { EntityManager, QueryRunner } from 'typeorm';
import { prepared } from '../database/postgres/data-source.js';
import { ADVISORY_LOCKS } from '../database/schema/advisory-locks.js';
import { OperatorError } from '../values/operator-error.js';
import { columnsOf } from './fields.js';
import { NEW_USERS, staged, type RecordType } from './record-type.js';
import { RECORD_TYPES } from './record-types.js';

/** Limits of one insert, which bound its memory, and how long it blocks other requests. */
export const CHUNK_RECORDS = 4_000;
const CHUNK_CHARACTERS = 500_000;

/**
 * Planner settings for statements over staged lines: scan these lines, and find referenced rows by key. With PostgreSQL's default
 * random_page_cost of 4, a feed of 1,000 lines read 100,000 members seven times. A merge join would use only one of a connection's two ids.
 */
export const STAGED_PLANS =
  'SET LOCAL enable_seqscan = on; SET LOCAL enable_mergejoin = off; SET LOCAL random_page_cost = 1.1';

export const ARE_PENDING = 'SELECT EXISTS (SELECT FROM pending_members) AS pending';

/** Prepares an import's transaction: lock, settings and staging tables. @throws OperatorError if another import is running */
export async function beginImport(manager: EntityManager): Promise<void> {
  const [row] = await manager.query<{ free: boolean }[]>('SELECT pg_try_advisory_xact_lock($1) AS free', [
    ADVISORY_LOCKS.import,
  ]);
  // A committed import may still be changing members.
  const [left] = await manager.query<{ pending: boolean }[]>(ARE_PENDING);
  if (!row!.free || left!.pending)
    throw new OperatorError('Another import is running: wait until it has ended');
  // JIT compilation took an eighth of the time of an import of 200,000 lines.
  await manager.query(`${STAGED_PLANS}; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL jit = off;
SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL work_mem = '64MB';
DO $$ BEGIN
  SET LOCAL client_connection_check_interval = '500ms';
EXCEPTION WHEN invalid_parameter_value THEN NULL; -- not supported on this system
END $$`);
  await createStaging(manager);
}

/** Creates the staging tables for this transaction. */
export async function createStaging(
  manager: EntityManager,
  types: readonly RecordType[] = RECORD_TYPES,
): Promise<void> {
  await manager.query(createSql(stagingTables(types), 'DROP'));
}

/** Names of the staging tables that each connection keeps: creating them is slow, and leaves dead rows in the catalog. */
const TABLES = new WeakMap<object, Set<string>>();

/** Creates the staging tables that the connection lacks. Call before a transaction begins. */
export async function keepStaging(runner: QueryRunner, types: readonly RecordType[]): Promise<void> {
  const connection = (await runner.connect()) as object;
  const has = TABLES.get(connection) ?? new Set();
  TABLES.set(connection, has);
  const missing = stagingTables(types).filter(({ name }) => !has.has(name));
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => name);
  // With statistics of one row, PostgreSQL looks up joined rows by key; without statistics, it expects many rows.
  const statistics = names.map((name) => `INSERT INTO ${name} VALUES (0);\nANALYZE ${name}`);
  await runner.query([createSql(missing, 'DELETE ROWS'), ...statistics].join(';\n'));
  for (const name of names) has.add(name);
}

const createSql = (tables: readonly StagingTable[], atCommit: 'DROP' | 'DELETE ROWS') =>
  tables
    .map(({ name, columns }) => `CREATE TEMP TABLE ${name} (${columns}) ON COMMIT ${atCommit}`)
    .join(';\n');

interface StagingTable {
  readonly name: string;
  readonly columns: string;
}

/** Lists only the tables that these types need, since creating a table takes about a millisecond. */
function stagingTables(types: readonly RecordType[]): StagingTable[] {
  const needed = RECORD_TYPES.filter((type) =>
    types.some(
      ({ name, refersTo }) => name === type.name || refersTo.some(({ table }) => table === type.name),
    ),
  );
  return [
    ...needed.map((type) => ({ name: staged(type.name), columns: stagingColumns(type) })),
    { name: NEW_USERS, columns: 'id bigint PRIMARY KEY' },
    { name: 'import_rejects', columns: REJECT_COLUMNS },
  ];
}

export class Staging {
  /** The insert in progress: pg deprecates concurrent statements on a connection. */
  inserting: Promise<unknown> = Promise.resolve();

  /** @param isPrepared whether to use prepared statements: for few lines in tables that the session keeps */
  constructor(
    readonly manager: EntityManager,
    readonly isPrepared = false,
  ) {}

  /** Runs a statement of constant text, with values only as parameters. */
  rows<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    return this.isPrepared ? prepared(this.manager, text, values) : this.manager.query(text, values);
  }

  /** Runs a statement of constant text that selects a number `n`, and returns the number. */
  async number(text: string, values?: unknown[]): Promise<number> {
    const [row] = await this.rows<{ n: number }>(text, values);
    return row!.n;
  }
}

/** Collects rows, and inserts them in chunks; the caller can add rows during an insert. */
export class StagedRows {
  readonly #insert: string;
  #records: string[] = [];
  #characters = 0;

  /** @param columns of the table, in its order, each with its SQL type */
  constructor(
    private readonly staging: Staging,
    table: string,
    columns: string,
  ) {
    this.#insert = `INSERT INTO ${table} SELECT * FROM jsonb_to_recordset($1::jsonb) AS r (${columns})`;
  }

  async add(record: object): Promise<void> {
    const json = JSON.stringify(record);
    this.#records.push(json);
    this.#characters += json.length;
    if (this.#records.length >= CHUNK_RECORDS || this.#characters >= CHUNK_CHARACTERS) await this.#handOn();
  }

  async flush(): Promise<void> {
    await this.#handOn();
    await this.staging.inserting;
  }

  async #handOn(): Promise<void> {
    await this.staging.inserting;
    if (this.#records.length === 0) return;
    this.staging.inserting = this.staging.rows(this.#insert, [`[${this.#records.join(',')}]`]);
    this.staging.inserting.catch(() => undefined); // the next insert or flush throws this error
    this.#records = [];
    this.#characters = 0;
  }
}

/** Columns of the table of bad lines, with SQL types. `type` is the record's type, or the file's name for a line without a type. */
export const REJECT_COLUMNS =
  'file integer, type text, line integer, path text, code text, reason text, text text';

/** Columns of the type's staging table, with SQL types. */
export function stagingColumns({ fields, notes }: RecordType): string {
  return [
    'line integer',
    'text text',
    'version bigint',
    'counts boolean',
    'deleted boolean',
    ...columnsOf(fields).flatMap(([column, { type }]) => (column === 'deleted' ? [] : `${column} ${type}`)),
    ...Object.keys(notes).map((column) => `${column} boolean`),
  ].join(', ');
}
