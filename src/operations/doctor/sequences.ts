import type { EntityManager } from 'typeorm';
import { HIGHEST_ID } from '../../values/vocabulary.js';
import { FIRST_ID, LAST_ID } from '../demo/demo.js';
import { fail, MEND, ok, type Check } from './check.js';

/** Tables whose ids come from a sequence, `<table>_id_seq`. */
const NUMBERED = ['users', 'events', 'connections', 'achievements'];

interface BadSequence {
  readonly sequence: string;
  /** Numbers as text: they may exceed JavaScript's safe integers. */
  readonly next: string;
  /** The greatest number that it may return, and that its table accepts. */
  readonly greatest: string;
  /** The highest id, without those so high that only somebody's own statement can have made them. */
  readonly highest: string;
}

/** SQL: the sequence of a table, if it will return an id already in use, or has come to its end. */
const badSequence = (table: string) =>
  // Without the demo's ids, which are deliberately far beyond those of any sequence.
  `SELECT '${table}_id_seq' AS sequence, next::text, greatest::text, highest::text
FROM (SELECT last_value::numeric + is_called::int AS next FROM ${table}_id_seq) s,
  (SELECT LEAST(seqmax, ${Number.MAX_SAFE_INTEGER}) AS greatest FROM pg_sequence WHERE seqrelid = '${table}_id_seq'::regclass) m,
  (SELECT COALESCE(max(id), 0) AS highest FROM ${table} WHERE id <= ${HIGHEST_ID} AND id NOT BETWEEN ${FIRST_ID} AND ${LAST_ID}) t
WHERE highest >= next OR next > greatest`;

/** Checks whether any sequence's next number will be refused. */
export async function checkSequences(manager: EntityManager): Promise<Check[]> {
  const bad = await manager.query<BadSequence[]>(NUMBERED.map(badSequence).join(' UNION ALL '));
  if (bad.length === 0) return [ok('sequences', 'each is beyond the ids in its table, and not at its end')];
  return bad.map(({ sequence, next, greatest, highest }) =>
    fail(
      sequence,
      BigInt(next) > BigInt(greatest)
        ? `is at its end, ${greatest}: a new row will be refused`
        : `goes on with ${next}, but its table has the id ${highest}: a new row will be refused`,
      BigInt(highest) < BigInt(greatest)
        ? MEND
        : `run in psql: ALTER SEQUENCE ${sequence} NO MAXVALUE; then \`pua doctor --mend\``,
    ),
  );
}

/** Moves them to the highest id in their table, where they allow it. @returns 1 for each sequence moved */
export async function mendSequences(manager: EntityManager): Promise<Record<string, number>> {
  const mended: Record<string, number> = {};
  for (const table of NUMBERED) {
    // In the statement that looks: other sessions may have drawn numbers meanwhile.
    const moved = await manager.query<BadSequence[]>(
      `SELECT sequence, setval(sequence::regclass, GREATEST(highest::bigint, 1), highest <> '0')
FROM (${badSequence(table)}) bad WHERE highest::bigint < greatest::bigint`,
    );
    for (const { sequence } of moved) mended[sequence] = 1;
  }
  return mended;
}
