import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { DataSource } from 'typeorm';
import { importRecords, type ImportOptions, type ImportReport } from '../../src/import/import-records.js';
import { folderSource } from '../../src/import/sources.js';
import type { TestApi } from './api.js';

/** One record of an import. */
export type ImportedRecord = Record<string, unknown>;
/** File → its records; a string is written as a line unchanged. */
export type ImportedFiles = Record<string, readonly (ImportedRecord | string)[]>;

const TABLES = ['users', 'achievements', 'events', 'participants', 'connections', 'user_achievements'];

export const user = (id: number, more: ImportedRecord = {}) => ({ id, username: `u${id}`, ...more });
export const event = (id: number, more: ImportedRecord = {}) => ({
  id,
  title: `Event ${id}`,
  status: 'completed',
  visibility: 'public',
  starts_at: '2024-05-01 18:00:00',
  timezone: 'America/Denver',
  organizer_id: 1,
  ...more,
});
export const participant = (event_id: number, user_id: number, more: ImportedRecord = {}) => ({
  event_id,
  user_id,
  role: 'attendee',
  rsvp_status: 'going',
  ...more,
});
export const connection = (
  id: number,
  requester_id: number,
  addressee_id: number,
  more: ImportedRecord = {},
) => ({
  id,
  requester_id,
  addressee_id,
  status: 'accepted',
  requested_at: '2024-01-01 10:00:00',
  connected_at: '2024-01-02 10:00:00',
  ...more,
});
export const achievement = (id: number, more: ImportedRecord = {}) => ({
  id,
  name: `Badge ${id}`,
  category: 'events',
  ...more,
});
export const earned = (user_id: number, achievement_id: number, more: ImportedRecord = {}) => ({
  user_id,
  achievement_id,
  progress: 1,
  earned_at: '2024-03-01 10:00:00',
  ...more,
});

/** A well-formed bcrypt hash that matches no password. */
export const BCRYPT_HASH = '$2b$10$abcdefghijklmnopqrstuu5Lo0g67CiD3M4RpN1BmBb4Crp5w7dbK';

/** Two members, an event, an achievement: other records can refer to them. */
export const BASE: ImportedFiles = {
  users: [user(1), user(2)],
  events: [event(1)],
  achievements: [achievement(1)],
};

/** Writes the files into a new folder. @returns its path */
export function writeFolder(files: ImportedFiles, compress = false): string {
  const folder = mkdtempSync(join(process.env.TEST_FOLDER!, 'import-'));
  for (const [name, records] of Object.entries(files)) {
    const text = records
      .map((record) => `${typeof record === 'string' ? record : JSON.stringify(record)}\n`)
      .join('');
    if (compress) writeFileSync(join(folder, `${name}.ndjson.gz`), gzipSync(text));
    else writeFileSync(join(folder, `${name}.ndjson`), text);
  }
  return folder;
}

/** Imports a folder of these files. */
export function importFiles(
  dataSource: DataSource,
  files: ImportedFiles,
  options: ImportOptions = {},
): Promise<ImportReport> {
  return importRecords(dataSource, folderSource(writeFolder(files)), options);
}

/** Removes all imported rows, and the rows that depend on them. */
export async function removeImported(dataSource: DataSource): Promise<void> {
  await dataSource.query('DELETE FROM user_achievements; DELETE FROM connections; DELETE FROM participants');
  await dataSource.query('DELETE FROM events; DELETE FROM achievements');
  // The server records uses of keys each half minute, which refer to the keys and members.
  // A trigger keeps erased members; only the owner of the table can disable it.
  await dataSource.query(`LOCK TABLE api_key_usage, member_usage IN EXCLUSIVE MODE;
DELETE FROM api_key_usage; DELETE FROM member_usage; DELETE FROM api_keys; ALTER TABLE users DISABLE TRIGGER users_erased_are_kept;
DELETE FROM users; ALTER TABLE users ENABLE ALWAYS TRIGGER users_erased_are_kept`);
}

/** All the platform's data after background work, with the version of every row, so rewriting a row counts as a change. */
async function everythingIn({ dataSource, platform }: TestApi): Promise<ImportedRecord> {
  await platform.settle();
  const digests = TABLES.map(
    (table) =>
      `(SELECT md5(string_agg(xmin::text || ctid::text || t::text, ',' ORDER BY ctid)) FROM ${table} t) AS ${table}`,
  );
  const sequences = ['users', 'events', 'connections', 'achievements'].map(
    (name) => `(SELECT last_value FROM ${name}_id_seq) AS ${name}_id_seq`,
  );
  const [row] = await dataSource.query<ImportedRecord[]>(`SELECT ${[...digests, ...sequences].join(', ')}`);
  return row!;
}

/** Helpers for import tests; the API under test exists only once they run. */
export const importsInto = (api: () => TestApi) => ({
  load: (files: ImportedFiles, options: ImportOptions = {}) => importFiles(api().dataSource, files, options),
  rows: <Row = ImportedRecord>(sql: string) => api().dataSource.query<Row[]>(sql),
  everything: () => everythingIn(api()),
});
