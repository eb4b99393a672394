import { Injectable } from '@nestjs/common';
import type { Principal } from '../../auth/principal.js';
import { Database, type Reads } from '../../database/database.js';
import { MemberReads } from '../../database/member-reads.js';
import { etagWithState, JsonResponse, parseStates } from '../../http/output/responses.js';
import { writeColumns, makeReader } from '../../model/response.js';
import { Problem } from '../../http/output/problems.js';
import { ChangedProfile, Me, Profile, type ProfileChanges, type ProfileUpdated } from './profile.dto.js';

const READ_ME = { name: 'read-me', text: `SELECT ${writeColumns(Me)} FROM users u WHERE u.id = $1` };

/** SQL: hash of a member's (`u`) version and values, for If-Match. Values can recur, and versions can recur after a restore. */
const STATE = `to_hex(hashtextextended(ROW(u.id, u.version, u.username, u.display_name, u.first_name, u.last_name, u.bio,
  u.profile_picture)::text, 0))`;

/** Columns of a member's (`u`) profile, with {@link COUNTED}. For one row, Node makes JSON faster than PostgreSQL. */
const PROFILE = `${STATE} AS state, ${writeColumns(Profile)}`;

/** One row `t` with both totals of the member ($1). */
const COUNTED = `(
  SELECT sum(achievements_count) AS achievements_count, sum(connections_count) AS connections_count
  FROM user_totals WHERE user_id = $1) t`;

const READ_PROFILE = {
  name: 'read-profile',
  text: `SELECT ${PROFILE} FROM users u CROSS JOIN ${COUNTED} WHERE u.id = $1`,
};

/** $1: member; $2: fields to change; $3: states that If-Match allows, or null; $4: app or key. Returns no row if the state differs. */
const UPDATE_PROFILE = `WITH before AS MATERIALIZED (
  -- Read under the lock, since the statement's snapshot may be older.
  SELECT id, jsonb_build_object('first_name', first_name, 'last_name', last_name, 'bio', bio, 'profile_picture', profile_picture) AS fields
  FROM users WHERE id = $1 FOR NO KEY UPDATE
), changed AS (
UPDATE users u SET
  first_name = CASE WHEN $2::jsonb ? 'first_name' THEN $2->>'first_name' ELSE u.first_name END,
  last_name = CASE WHEN $2 ? 'last_name' THEN $2->>'last_name' ELSE u.last_name END,
  bio = CASE WHEN $2 ? 'bio' THEN $2->>'bio' ELSE u.bio END,
  profile_picture = CASE WHEN $2 ? 'profile_picture' THEN $2->>'profile_picture' ELSE u.profile_picture END,
  edited_fields = ARRAY(SELECT unnest(u.edited_fields) UNION SELECT wanted.name FROM jsonb_each_text($2) AS wanted (name, value)
    JOIN (VALUES ('first_name', u.first_name), ('last_name', u.last_name), ('bio', u.bio), ('profile_picture', u.profile_picture))
      AS present (name, value) USING (name) WHERE wanted.value IS DISTINCT FROM present.value)
FROM before b, ${COUNTED}
WHERE u.id = b.id AND ($3::text[] IS NULL OR ${STATE} = ANY ($3))
RETURNING ${PROFILE}, u.first_name, u.last_name, b.fields AS fields_before
), told AS (
  INSERT INTO platform_changes (type, user_id, by_id, fields)
  SELECT 'profile.updated', $1, $4, edited.fields FROM changed CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(key, value) AS fields FROM jsonb_each($2) WHERE value IS DISTINCT FROM changed.fields_before->key) edited
  WHERE edited.fields IS NOT NULL
)
SELECT * FROM changed`;

type Row = Record<string, unknown>;
type ProfileRow = Row & { readonly state: string };

const profileOf = makeReader(Profile);
const changedProfileOf = makeReader(ChangedProfile);

@Injectable()
export class ProfileService {
  constructor(
    private readonly database: Database,
    private readonly reads: MemberReads,
  ) {}

  async me(userId: number): Promise<Me> {
    const [row] = await this.reads.of(userId).read<Me & Row>(READ_ME, [userId]);
    return row!;
  }

  profile(userId: number): Promise<JsonResponse> {
    return this.#profile(this.reads.of(userId), userId);
  }

  async #profile(reads: Reads, userId: number): Promise<JsonResponse> {
    const [row] = await reads.read<ProfileRow>(READ_PROFILE, [userId]);
    return answerOf(row!);
  }

  /** @param ifMatch header @param confirm runs before a retry: throws if the credential has ended @throws Problem precondition_failed */
  async update(
    { userId, clientId, keyId }: Principal,
    changes: ProfileChanges,
    ifMatch: string | undefined,
    confirm: () => Promise<void>,
  ): Promise<JsonResponse> {
    const values = [userId, JSON.stringify(changes), parseStates(ifMatch) ?? null, clientId ?? keyId];
    const [row] = await this.database.patient<ProfileRow>(UPDATE_PROFILE, values, confirm);
    // After success or a 412, a client's next read must not get an older version from a replica.
    await this.reads.advance(userId);
    const { headers } = row ? answerOf(row) : await this.#profile(this.database, userId);
    if (!row) throw new Problem('precondition_failed', { headers });
    const answer: ProfileUpdated = { message: 'Profile updated.', profile: changedProfileOf(row) };
    return new JsonResponse(JSON.stringify(answer), headers);
  }
}

function answerOf(row: ProfileRow): JsonResponse {
  const json = JSON.stringify(profileOf(row));
  return new JsonResponse(json, { ETag: etagWithState(row.state, json) });
}
