import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eraseMembers } from '../../src/accounts/erasure.js';
import {
  areTheirs,
  EXPORTED_ROWS,
  MEMBER_TABLES,
  type MemberTable,
} from '../../src/database/schema/member-tables.js';
import { PeriodicWork } from '../../src/runtime/periodic-work.js';
import { checkDatabase } from '../../src/operations/doctor/doctor.js';
import { PersonalData } from '../../src/personal-data/personal-data.js';
import { rowsWith } from '../support/audit.js';
import { OauthTest } from '../support/oauth.js';

let oauth: OauthTest;
beforeAll(async () => {
  oauth = await OauthTest.start();
  // Stops periodic work, which processes and deletes members' rows.
  await oauth.api.app.get(PeriodicWork).beforeApplicationShutdown();
});
afterAll(() => oauth.close());

const query = <Row>(sql: string, values: unknown[] = []) => oauth.query<Row>(sql, values);

/** Names of columns with members' ids, also without a foreign key. */
const NAMES = ['user_id', 'owner_id', 'peer_id', 'organizer_id', 'member_id', 'requester_id', 'addressee_id'];

describe('the tables’ declarations about members', () => {
  it('list every column that references users, or whose name means a member id', async () => {
    const columns = await query<{ name: string }>(
      `SELECT c.conrelid::regclass || '.' || a.attname AS name FROM pg_constraint c
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[array_position(c.confkey, 1::smallint)]
WHERE c.contype = 'f' AND c.confrelid = 'users'::regclass
UNION SELECT table_name || '.' || column_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND column_name = ANY ($1) ORDER BY 1`,
      [NAMES],
    );
    const declared = MEMBER_TABLES.flatMap(({ name, owner }) => owner.map((column) => `${name}.${column}`));
    expect(columns.length).toBeGreaterThan(20);
    expect(columns.filter(({ name }) => !declared.includes(name))).toEqual([]);
  });

  it('cover every table with a foreign key to a table whose rows an erasure deletes', async () => {
    const erased = MEMBER_TABLES.filter(({ erase }) => erase === 'delete').map(({ name }) => name);
    const referring = await query<{ name: string }>(
      `SELECT DISTINCT conrelid::regclass::text AS name FROM pg_constraint WHERE contype = 'f' AND confrelid::regclass::text = ANY ($1)`,
      [erased],
    );
    const declared = MEMBER_TABLES.map(({ name }) => name);
    expect(referring.length).toBeGreaterThan(5);
    expect(referring.filter(({ name }) => !declared.includes(name))).toEqual([]);
  });

  it('exclude every bytea column from the data export, except an app’s logo', () => {
    const bytes = MEMBER_TABLES.flatMap(({ name, columns, secrets, export: part }) =>
      'as' in part
        ? columns
            .filter((column) => column.type === 'bytea' && !secrets.includes(column.name))
            .filter((column) => !part.without?.includes(column.name))
            .map((column) => `${name}.${column.name}`)
        : [],
    );
    expect(bytes).toEqual(['oauth_clients.logo']);
    const items = EXPORTED_ROWS.map(({ item }) => item).join();
    expect(items).toContain('encode(t.logo');
    expect(items).not.toMatch(/payload|secret(?!_auth_method)|hash/);
  });

  it('determine the parts of the data export', async () => {
    const { id } = await oauth.member();
    const pieces: string[] = [];
    for await (const piece of oauth.api.app.get(PersonalData).of(id, () => Promise.resolve()))
      pieces.push(piece.toString());
    const declared = MEMBER_TABLES.flatMap(({ export: part }) =>
      'as' in part ? [part.as] : 'in' in part ? [part.in] : [],
    );
    expect(Object.keys(JSON.parse(pieces.join('')) as object).toSorted()).toEqual(
      [...new Set([...declared, 'exported_at', 'pending_connections'])].toSorted(),
    );
  });
});

/** SQL of values for columns with constraints; null: no value. */
const VALUES: Record<string, Record<string, string | null>> = {
  // The table contains ids of apps.
  access_changes: { client_id: `'app'`, reason: `'member'`, scopes: `'{}'` },
  api_keys: {
    environment: `'test'`,
    last_four: `'abcd'`,
    pepper_id: `'\\x01020304'`,
    revocation_reason: null,
    scopes: `'{profile:read}'`,
    replaced_by: null,
  },
  // The audit log keeps only ids of apps and keys.
  auth_events: {
    type: `'user.created'`,
    actor: `'user'`,
    client_id: null,
    key_id: null,
    error_id: null,
  },
  changes: { resource: `'events'`, kind: `'updated'` },
  developer_request_counts: { key_id: null },
  developer_requests: { key_id: null },
  member_usage: { app_kind: `'client'` },
  oauth_client_secrets: {
    hash: `decode(repeat('00', 32), 'hex')`,
    pepper_id: `'\\x01020304'`,
    last_four: `'abcd'`,
  },
  oauth_clients: {
    type: `'web'`,
    id_token_signed_response_alg: `'ES256'`,
    profile: `'oauth21'`,
    longest_access: `'once'`,
    pkce: `'required'`,
    secret_auth_method: null,
  },
  oauth_state: { model: `'Interaction'` },
  oauth_tokens: { model: `'AccessToken'` },
  platform_changes: { type: `'profile.updated'` },
  record_versions: { type: `'participants'` },
  webhook_deliveries: { status: `'pending'` },
  webhook_endpoints: { key_id: null, previous_secret: null, disabled_because: null },
};

interface Column {
  name: string;
  type: string;
  is_needed: boolean;
}

let marks = 1_000;

/** A member with rows in every table of members: `mark` is in every text column. */
async function memberEverywhere(): Promise<{ id: number; mark: string }> {
  const mark = `Zyxwvuts${++marks}`;
  const { id } = await oauth.member();
  const { platform } = oauth.api;
  await query(
    `UPDATE users SET username = $2, first_name = $2, last_name = $2, stored_display_name = $2, bio = $2,
  profile_picture = 'https://example.com/' || $2, external_id = $2, email = $2 || '@example.com' WHERE id = $1`,
    [id, mark],
  );
  await platform.connection(id, await platform.user());
  await platform.participant(await platform.event({ organizer_id: id }), id, { role: 'organizer' });
  await platform.progress(id, await platform.achievement(), { earned_at: '2024-01-01T10:00:00Z' });
  const ids = new Map<object, string>();
  for (const table of MEMBER_TABLES.toReversed()) {
    const [row] = await query<{ id: string }>(
      `SELECT COALESCE(to_jsonb(t) ->> 'id', '') AS id FROM ${table.name} t WHERE ${theirs(table, id)}`,
    );
    ids.set(table.entity, row?.id ?? (await addRow(table, id, mark, ids)));
  }
  return { id, mark };
}

const theirs = (table: MemberTable, id: number) => areTheirs(table, 't', (column) => `${column} = ${id}`);

async function addRow(
  table: MemberTable,
  id: number,
  mark: string,
  ids: ReadonlyMap<object, string>,
): Promise<string> {
  const columns = await query<Column>(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type, attnotnull AND NOT atthasdef AS is_needed
FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attidentity = '' AND attgenerated = ''`,
    [table.name],
  );
  const bytes = `convert_to(rpad('${mark}', 32, 'x'), 'UTF8')`;
  const values: Record<string, string> = {
    text: `'${mark}'`,
    'text[]': `ARRAY['${mark}']`,
    bytea: bytes,
    jsonb: `'{"mark": "${mark}"}'`,
  };
  const needed: Record<string, string> = {
    'timestamp with time zone': `now() + interval '1 day'`,
    date: 'current_date',
    boolean: 'false',
  };
  const given = columns.flatMap(({ name, type, is_needed }) => {
    const value = VALUES[table.name]?.[name];
    const reference = table.columns.find((column) => column.name === name)?.reference?.to;
    const parent = reference && ids.get(reference);
    if (value !== undefined) return value === null ? [] : [[name, value]];
    if (parent !== undefined) return [[name, `'${parent}'`]];
    if (table.owner.includes(name)) return [[name, String(id)]];
    const other = values[type] ?? (is_needed ? (needed[type] ?? '1') : undefined);
    return other === undefined ? [] : [[name, other]];
  });
  const [row] = await query<{ id: string }>(
    `INSERT INTO ${table.name} AS t (${given.map(([name]) => name).join(', ')})
VALUES (${given.map(([, value]) => value).join(', ')}) RETURNING to_jsonb(t) ->> 'id' AS id`,
  );
  return row!.id;
}

/** Names of the tables with rows that contain the text. */
const holding = async (text: string) => [
  ...new Set((await rowsWith(oauth.dataSource, text)).map((row) => row.split(':')[0]!)),
];

describe('the erasure of a member with rows in every table', () => {
  it('removes the member’s texts, and the member’s rows from tables that declare deletion; another member’s rows remain', async () => {
    const { id, mark } = await memberEverywhere();
    const other = await memberEverywhere();
    const marked = await holding(mark);
    const unmarked = MEMBER_TABLES.map(({ name }) => name).filter((name) => !marked.includes(name));
    expect(unmarked.toSorted().join(' ')).toBe(
      'access_changes changes events participants record_versions renamed_users user_achievements user_totals',
    );
    const deleted = MEMBER_TABLES.filter(({ erase }) => erase === 'delete');
    const counts = async (member: number) => {
      const found: Record<string, number> = {};
      for (const table of deleted)
        found[table.name] = (
          await query(`SELECT FROM ${table.name} t WHERE ${theirs(table, member)}`)
        ).length;
      return found;
    };
    const others = await counts(other.id);
    expect(Object.values(await counts(id))).not.toContain(0);

    await eraseMembers(oauth.dataSource, [id], { actor: 'admin' });

    expect(await holding(mark)).toEqual([]);
    expect(await counts(id)).toEqual(Object.fromEntries(deleted.map(({ name }) => [name, 0])));
    expect(await counts(other.id)).toEqual(others);
  });

  it('is checked by the doctor, which deletes remaining rows with --mend', async () => {
    const { id } = await memberEverywhere();
    await eraseMembers(oauth.dataSource, [id], { actor: 'admin' });
    const ask = async (mend: boolean) => {
      const state = { current: 0, previous: 0, next: 0, unknown: 0, movedAt: undefined };
      const asked = { mend, sealState: async () => state, webhookSeals: async () => state };
      return (await checkDatabase(oauth.dataSource, oauth.api.config, asked)).checks;
    };
    const erasures = async () => (await ask(false)).find(({ name }) => name === 'erasures');
    expect(await erasures()).toMatchObject({ status: 'ok' });
    await query(`INSERT INTO member_usage VALUES ($1, current_date, 'key', 'one', 'events:read', 1, now())`, [
      id,
    ]);
    expect(await erasures()).toMatchObject({
      status: 'fail',
      message: 'rows of erased members are left in member_usage (1)',
    });
    expect(await ask(true)).toContainEqual(
      expect.objectContaining({ name: 'mended member_usage', status: 'ok' }),
    );
    expect(await erasures()).toMatchObject({ status: 'ok' });
  });
});
