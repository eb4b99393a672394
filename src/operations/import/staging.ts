import type { EntityManager } from 'typeorm';
import { ADVISORY_LOCKS } from '../../database/schema/advisory-locks.js';
import { OperatorError } from '../../values/operator-error.js';
import { columnsOf } from './fields.js';
import { NEW_USERS, staged, type RecordType } from './record-type.js';
import { RECORD_TYPES } from './record-types.js';

/** Bytes staged at a time: enough to be fast, few enough to keep memory flat and to delay the other requests of a server by only 5 ms. */
export const CHUNK_RECORDS = 4_000;
const CHUNK_CHARACTERS = 500_000;

/** Whether members of an import are still to be changed. */
export const ARE_PENDING = 'SELECT EXISTS (SELECT FROM pending_members) AS pending';

/** Takes the lock that lets one import run at a time, lifts the timeouts, and creates the staging tables; ends if the client goes away. */
export async function beginImport(manager: EntityManager): Promise<void> {
  const [row] = await manager.query<{ free: boolean }[]>('SELECT pg_try_advisory_xact_lock($1) AS free', [
    ADVISORY_LOCKS.import,
  ]);
  // One that has committed may still be changing members.
  const [left] = await manager.query<{ pending: boolean }[]>(ARE_PENDING);
  if (!row!.free || left!.pending)
    throw new OperatorError('Another import is running: wait until it has ended');
  // No merges: of two keys PostgreSQL may sort by one alone, and then compares a member's lines with as many rows, all with all.
  await manager.query(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL enable_mergejoin = off;
SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL work_mem = '64MB';
DO $$ BEGIN
  SET LOCAL client_connection_check_interval = '500ms';
EXCEPTION WHEN invalid_parameter_value THEN NULL; -- not on this system
END $$`);
  await createStaging(manager);
}

/**
 * Creates the staging tables, which last as long as the transaction.
 *
 * @param types the types that occur, together with all that they refer to; each table takes a millisecond
 */
export async function createStaging(
  manager: EntityManager,
  types: readonly RecordType[] = RECORD_TYPES,
): Promise<void> {
  const needed = RECORD_TYPES.filter((type) =>
    types.some(
      ({ name, refersTo }) => name === type.name || refersTo.some(({ table }) => table === type.name),
    ),
  );
  const tables = [
    ...needed.map((type) => `${staged(type.name)} (${stagingColumns(type)})`),
    `${NEW_USERS} (id bigint PRIMARY KEY)`,
    `import_rejects (${REJECT_COLUMNS})`,
  ];
  await manager.query(tables.map((table) => `CREATE TEMP TABLE ${table} ON COMMIT DROP`).join(';\n'));
}

/** Collects rows of a staging table, and inserts some thousand at a time; the next ones are read while the database processes them. */
export class StagedRows {
  readonly #insert: string;
  #records: string[] = [];
  #characters = 0;
  #taking: Promise<unknown> = Promise.resolve();

  /** @param columns of the table, in its order, each with its SQL type */
  constructor(
    private readonly manager: EntityManager,
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
    await this.#taking;
  }

  async #handOn(): Promise<void> {
    await this.#taking;
    if (this.#records.length === 0) return;
    this.#taking = this.manager.query(this.#insert, [`[${this.#records.join(',')}]`]);
    this.#taking.catch(() => undefined); // told to whoever waits for it next
    this.#records = [];
    this.#characters = 0;
  }
}

/** The columns of the table of bad lines, each with its SQL type; `type` is that of the record, or the file where there is none. */
export const REJECT_COLUMNS =
  'file integer, type text, line integer, path text, code text, reason text, text text';

/** The columns of the staging table of the type, each with its SQL type. */
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
