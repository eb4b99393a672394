import type { EntityManager } from 'typeorm';
import { asShown, isName, isUsername } from '../../values/names.js';
import { ok, warn, type Check } from './check.js';

const ROWS_AT_ONCE = 5_000;
const MOST_NAMED = 10;

/** Everything that is named by somebody, and shown under that name. Plain ASCII is left to the database: it is most of all names. */
const NAMED = (
  [
    ['member', 'users', 'username'],
    ['app', 'oauth_clients', 'name'],
    ['key', 'api_keys', 'name'],
    ['calendar link', 'calendar_links', 'name'],
    ['passkey', 'passkeys', 'name'],
  ] as const
)
  .map(
    ([what, table, name]) => `SELECT '${what}' AS what, id::text AS id, ${name} AS name FROM ${table}
WHERE ${name} COLLATE "C" !~ '^[!-~]+( [!-~]+)*$'`,
  )
  .join(' UNION ALL ');

interface Named {
  readonly what: string;
  readonly id: string;
  readonly name: string;
}

/** Checks for names from before there was a rule for them. */
export async function checkNames(manager: EntityManager): Promise<Check> {
  await manager.query(`DECLARE odd_names NO SCROLL CURSOR FOR ${NAMED}`);
  const first: string[] = [];
  let count = 0;
  for (;;) {
    const rows = await manager.query<Named[]>(`FETCH ${ROWS_AT_ONCE} FROM odd_names`);
    for (const { what, id, name } of rows) {
      if (what === 'member' ? isUsername(name) : isName(name)) continue;
      if (++count <= MOST_NAMED) first.push(`${what} ${id}, shown as “${asShown(name)}”`);
    }
    if (rows.length < ROWS_AT_ONCE) break;
  }
  await manager.query('CLOSE odd_names');
  if (count === 0) return ok('names', 'each is shown as it is stored');
  return warn(
    'names',
    `${count} have characters that nobody sees, or could pass for others: ${first.join('; ')}${count > first.length ? '; …' : ''}`,
    'rename members with `pua users update <id> --username`, apps with `pua clients update <id> --name`; everything keeps working until then',
  );
}
