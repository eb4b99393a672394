import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { jsonObject } from '../../database/sql.js';
import { Answer } from '../../http/answer.js';
import { versionedEtag, versionsOf } from '../../http/etag.js';
import { Problem } from '../../http/problems.js';
import type { ProfileChanges } from './profile.dto.js';

/** Of a member, over `u` (users) and `t` (user_totals): names and the SQL of their JSON. */
const FIELDS = {
  id: 'u.id',
  username: 'json_text(u.username)',
  first_name: 'json_text(u.first_name)',
  last_name: 'json_text(u.last_name)',
  display_name: 'json_text(u.display_name)',
  bio: 'json_text(u.bio)',
  profile_picture: 'json_text(u.profile_picture)',
  created_at: `'"' || api_time(u.created_at) || '"'`,
  achievements_count: 't.achievements_count',
  connections_count: 't.connections_count',
};

const json = (...names: (keyof typeof FIELDS)[]) =>
  jsonObject(Object.fromEntries(names.map((name) => [name, FIELDS[name]])));

const ME = json('id', 'username', 'first_name', 'last_name', 'display_name', 'profile_picture');
const CHANGED = json('id', 'username', 'first_name', 'last_name', 'display_name', 'bio', 'profile_picture');
const PROFILE = json(
  'id',
  'username',
  'display_name',
  'bio',
  'profile_picture',
  'created_at',
  'achievements_count',
  'connections_count',
);

const READ_ME = { name: 'read-me', text: `SELECT ${ME} AS json FROM users u WHERE u.id = $1` };

const READ_PROFILE = {
  name: 'read-profile',
  text: `SELECT u.version, ${PROFILE} AS json FROM users u JOIN user_totals t ON t.user_id = u.id WHERE u.id = $1`,
};

/**
 * $2 holds the fields that change; a key that is absent leaves its column alone. $3: the versions that If-Match
 * allows, or null for any. One row comes back where the user is there: `changed` tells whether $3 allowed it.
 */
const UPDATE_PROFILE = `WITH changed AS (
  UPDATE users SET
    first_name = CASE WHEN $2::jsonb ? 'first_name' THEN $2->>'first_name' ELSE first_name END,
    last_name = CASE WHEN $2 ? 'last_name' THEN $2->>'last_name' ELSE last_name END,
    bio = CASE WHEN $2 ? 'bio' THEN $2->>'bio' ELSE bio END,
    profile_picture = CASE WHEN $2 ? 'profile_picture' THEN $2->>'profile_picture' ELSE profile_picture END
  WHERE id = $1 AND ($3::bigint[] IS NULL OR version = ANY ($3))
  RETURNING *
)
SELECT u.version, ${PROFILE} AS json, ${CHANGED} AS changed
FROM changed u JOIN user_totals t ON t.user_id = u.id`;

interface ProfileRow extends Record<string, unknown> {
  version: number;
  json: string;
}

@Injectable()
export class ProfileService {
  constructor(private readonly database: Database) {}

  async me(userId: number): Promise<Answer> {
    const [row] = await this.database.read<{ json: string }>(READ_ME, [userId]);
    return new Answer(row!.json);
  }

  async profile(userId: number): Promise<Answer> {
    const [row] = await this.database.read<ProfileRow>(READ_PROFILE, [userId]);
    return new Answer(row!.json, { ETag: versionedEtag(row!.version, row!.json) });
  }

  /**
   * @param ifMatch the header, whose validators are compared with the row's version in the UPDATE itself
   * @throws Problem precondition_failed with the current ETag
   */
  async update(userId: number, changes: ProfileChanges, ifMatch: string | undefined): Promise<Answer> {
    const versions = versionsOf(ifMatch) ?? null;
    const [row] = await this.database.rows<ProfileRow & { changed: string }>(UPDATE_PROFILE, [
      userId,
      JSON.stringify(changes),
      versions,
    ]);
    if (!row) {
      const current = await this.profile(userId);
      throw new Problem('precondition_failed', { headers: { ETag: current.headers.ETag! } });
    }
    return new Answer(`{"message":"Profile updated.","profile":${row.changed}}`, {
      ETag: versionedEtag(row.version, row.json),
    });
  }
}
