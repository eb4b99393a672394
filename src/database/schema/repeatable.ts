import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EntityManager } from 'typeorm';
import { sha256 } from '../../crypto/digests.js';

const FOLDER = join(import.meta.dirname, '../../../schema');

/** What stands for schema/ in lists of migrations. */
export const REPEATABLE = 'schema/';

/** The statements of schema/, by what DROP calls what each of them makes; functions before the triggers that call them. */
const STATEMENTS = readStatements();

export const REPEATABLE_DIGEST = sha256(JSON.stringify([...STATEMENTS]), 'hex');

function readStatements(): ReadonlyMap<string, string> {
  const texts = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql'))
    .toSorted()
    .flatMap((name) => readFileSync(join(FOLDER, name), 'utf8').split(/\n\n(?=(?:--.*\n)*CREATE )/));
  const named = texts.map((text): [string, string] => [nameOf(text), text.trim()]);
  const functions = named.filter(([name]) => name.startsWith('FUNCTION'));
  return new Map([...functions, ...named.filter((entry) => !functions.includes(entry))]);
}

function nameOf(statement: string): string {
  const found = /^CREATE OR REPLACE (?:(FUNCTION \w+)|(TRIGGER \w+)[^;]*?\s(ON \w+))/m.exec(statement);
  if (!found) throw new Error(`schema/ has what is neither a function nor a trigger: ${statement}`);
  return found.slice(1).filter(Boolean).join(' ');
}

/**
 * Brings functions and triggers to the state of schema/: writes what is not as an earlier version wrote it or is gone, and drops
 * what only that had. Nothing else is locked, and what others have made is left alone.
 *
 * @param manager of the transaction in which migrations ran
 * @returns whether anything was to be done
 */
export async function applyRepeatable(manager: EntityManager): Promise<boolean> {
  const [{ objects, there }] = (await manager.query(`SELECT objects, ARRAY(
  SELECT 'FUNCTION ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT format('TRIGGER %s ON %s', tgname, tgrelid::regclass) FROM pg_trigger) AS there
FROM schema_versions ORDER BY applied_at DESC LIMIT 1`)) as [
    { objects: Record<string, string>; there: string[] },
  ];
  const writing = [...STATEMENTS].filter(([name, text]) => objects[name] !== text || !there.includes(name));
  const gone = Object.keys(objects).filter((name) => !STATEMENTS.has(name) && there.includes(name));
  const triggers = gone.filter((name) => name.startsWith('TRIGGER'));
  const functions = gone.filter((name) => name.startsWith('FUNCTION')).map((name) => name.split(' ')[1]);
  const statements = [
    ...writing.map(([, text]) => text),
    ...triggers.map((name) => `DROP ${name};`),
    ...(functions.length > 0 ? [`DROP FUNCTION ${functions.join(', ')};`] : []),
  ];
  await manager.query(statements.join('\n'));
  await manager.query(
    `INSERT INTO schema_versions (digest, objects) VALUES ($1, $2)
ON CONFLICT (digest) DO UPDATE SET applied_at = EXCLUDED.applied_at`,
    [REPEATABLE_DIGEST, Object.fromEntries(STATEMENTS)],
  );
  return statements.length > 0;
}
