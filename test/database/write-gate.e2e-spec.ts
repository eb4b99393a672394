import { expect, it } from '@jest/globals';
import { WriteGate } from '../../src/database/postgres/bounded-client.js';
import { openDatabase } from '../support/open-database.js';

/** A gate that rejects writes, since three writes were not confirmed. */
function closedGate(): WriteGate {
  const gate = new WriteGate();
  for (let i = 0; i < 3; i++) gate.unconfirmed();
  return gate;
}

it('the write gate rejects calls of this schema’s volatile functions, and allows calls of its other functions', async () => {
  await using database = await openDatabase();
  const functions = await database.dataSource.query<{ name: string; writes: boolean }[]>(
    `SELECT proname AS name, provolatile = 'v' AS writes FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype ORDER BY 1`,
  );
  const isRejected = ({ name }: { name: string }) => {
    try {
      closedGate().pass(`SELECT ${name}($1) AS done`);
      return false;
    } catch {
      return true;
    }
  };
  expect(functions.map((called) => ({ ...called, writes: isRejected(called) }))).toEqual(functions);
  expect(functions).toContainEqual({ name: 'coalesce_changes', writes: true });
  expect(() => closedGate().pass('SELECT coalesce_changes($1)')).toThrow('writes are not confirmed');
  expect(() => closedGate().pass('SELECT username FROM users WHERE id = $1')).not.toThrow();
});
