import type { DataSource } from 'typeorm';
import type { AuthEventType } from '../../src/audit/audit.js';

/** Tables that any request or the server's periodic work may change. */
const BESIDE = [
  'change_marks',
  'change_places',
  'login_throttle',
  'member_usage',
  'oauth_refusals',
  'platform_total_deltas',
  'platform_totals',
  'rate_limit_counts',
  'renamed_users',
];

/** Conditions that exclude rows of other tables, such as used tokens, whose stored response is soon deleted. */
const ROWS: Readonly<Record<string, string>> = {
  auth_events: `WHERE type NOT IN ('authorization.refused', 'token.refused')`,
  oauth_tokens: 'WHERE consumed_at IS NULL',
  oauth_state: `WHERE model NOT LIKE 'Passkey%'`,
};

/** Runs `work` while no event of this type can be recorded. */
export async function withoutAudit<Result>(
  dataSource: DataSource,
  type: AuthEventType,
  work: () => Promise<Result>,
): Promise<Result> {
  await dataSource.query(`CREATE FUNCTION refuse_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the trail is full'; END $$;
CREATE TRIGGER refuse_line BEFORE INSERT OR UPDATE ON auth_events FOR EACH ROW WHEN (NEW.type = '${type}')
  EXECUTE FUNCTION refuse_line()`);
  try {
    return await work();
  } finally {
    await dataSource.query('DROP FUNCTION refuse_line CASCADE');
  }
}

/** A digest of each table's contents. */
export async function everyRow(dataSource: DataSource): Promise<Record<string, string>> {
  const tables = await dataSource.query<{ name: string }[]>(
    `SELECT quote_ident(relname) AS name FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> ALL ($1) ORDER BY 1`,
    [BESIDE],
  );
  const digests = tables.map(
    ({ name }) =>
      `(SELECT md5(COALESCE(string_agg(t::text, ',' ORDER BY t::text), '')) FROM ${name} t ${ROWS[name] ?? ''}) AS ${name}`,
  );
  const [row] = await dataSource.query<Record<string, string>[]>(`SELECT ${digests.join(', ')}`);
  return row!;
}

/** Rows of all tables that contain the text in any case, or as bytes: `table: row`. */
export async function rowsWith(dataSource: DataSource, text: string): Promise<string[]> {
  const tables = await dataSource.query<{ name: string }[]>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await dataSource.query<{ row: string }[]>(
      `SELECT t::text AS row FROM ${name} t
WHERE lower(t::text) LIKE ANY (ARRAY['%' || lower($1) || '%', '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%'])`,
      [text],
    );
    found.push(...rows.map(({ row }) => `${name}: ${row}`));
  }
  return found;
}
