import type { EntityManager } from 'typeorm';

/** Cached, since PostgreSQL reads six hundred files for the list (60 to 100 ms). */
let names: ReadonlySet<string> | undefined;

/** Loads the IANA time zones that the database knows, once. Call before reading lines. */
export async function learnTimeZones(database: Pick<EntityManager, 'query'>): Promise<void> {
  if (names) return;
  const rows = await database.query<{ name: string }[]>(
    `SELECT name FROM pg_timezone_names WHERE name !~ '^(posix|right)/|^(posixrules|localtime|Factory)$'`,
  );
  names = new Set(rows.map(({ name }) => name));
}

/** Tells whether the database knows the time zone. */
export function isTimeZone(name: string): boolean {
  if (!names) throw new Error('the database has not been asked which time zones it knows');
  return names.has(name);
}
