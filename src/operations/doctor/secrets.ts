import type { DataSource, EntityManager } from 'typeorm';
import type { Config } from '../../config/config.js';
import type { EncryptionCounts } from '../../crypto/encryption.js';
import { pepperIdsOf } from '../../crypto/secret-hashes.js';
import { fail, ok, warn, warnIf, type Check } from './check.js';

/** Numbers of published signing keys, by the SECRET_KEY that encrypts them. */
export interface EncryptionState extends EncryptionCounts {
  readonly movedAt: Date | undefined;
}

interface LiveHashes {
  readonly all: number;
  readonly previous: number;
  readonly unknown: number;
}

/** SQL: columns of {@link LiveHashes}; $1 and $2 are the current and the previous pepper. */
const COUNTED = `count(*) AS all, count(*) FILTER (WHERE pepper_id = $2) AS previous,
  count(*) FILTER (WHERE pepper_id <> $1 AND pepper_id IS DISTINCT FROM $2) AS unknown`;

/** Checks which SECRET_KEY live API keys and client secrets use, and whether a browser has sent a live key. */
export async function checkKeys(manager: EntityManager, config: Config): Promise<Check[]> {
  const [current, previous = null] = pepperIdsOf(config.secrets);
  const peppers = [current, previous];
  const [live] = await manager.query<(LiveHashes & { exposed: number })[]>(
    `SELECT ${COUNTED}, count(u.exposed_at) AS exposed FROM api_keys k LEFT JOIN api_key_usage u ON u.key_id = k.id
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    peppers,
  );
  const [secrets] = await manager.query<LiveHashes[]>(
    `SELECT ${COUNTED} FROM oauth_client_secrets WHERE expires_at IS NULL OR expires_at > now()`,
    peppers,
  );
  const { all, previous: older, unknown, exposed } = live!;
  return [
    ...warnIf(
      secrets!.previous + secrets!.unknown > 0,
      'client secrets',
      `${secrets!.unknown} of ${secrets!.all} are rejected, because they were created under another SECRET_KEY, and ${secrets!.previous} still need SECRET_KEY_PREVIOUS`,
      'keep SECRET_KEY_PREVIOUS until none are left: each moves to SECRET_KEY when it is used; `pua clients rotate-secret` replaces one',
    ),
    unknown > 0
      ? fail(
          'keys',
          `${unknown} live keys are rejected, because they were created under another SECRET_KEY`,
          'set SECRET_KEY_PREVIOUS to that SECRET_KEY, or create new keys',
        )
      : older > 0
        ? warn(
            'keys',
            `${older} of ${all} live keys still need SECRET_KEY_PREVIOUS`,
            'keep it until none are left: each moves to SECRET_KEY when it is used',
          )
        : ok('keys', `${all} live, all under the current SECRET_KEY`),
    ...warnIf(
      exposed > 0,
      'exposed keys',
      `${exposed} live keys were sent by a browser`,
      'rotate the keys that `pua keys list` shows under EXPOSED, with --overlap 0s',
    ),
  ];
}

/** Checks whether sign-ins and calendar links still need SECRET_KEY_PREVIOUS. */
export async function checkSignIns(
  dataSource: DataSource,
  config: Config,
  { movedAt }: EncryptionState,
): Promise<Check[]> {
  if (!config.secrets.hasPrevious || !movedAt) return [];
  const [older] = await dataSource.query<{ tokens: number; sessions: number; until: string | null }[]>(
    `WITH older AS (
  SELECT true AS token, expires_at FROM oauth_tokens
  WHERE model = 'RefreshToken' AND consumed_at IS NULL AND created_at < $1 AND expires_at > now()
  UNION ALL
  SELECT false, expires_at FROM oauth_sessions WHERE user_id IS NOT NULL AND last_seen_at < $1 AND expires_at > now())
SELECT count(*) FILTER (WHERE token) AS tokens, count(*) FILTER (WHERE NOT token) AS sessions,
  left(max(expires_at)::text, 10) AS until FROM older`,
    [movedAt],
  );
  const { tokens, sessions, until } = older!;
  const [unused] = await dataSource.query<{ links: number }[]>(
    'SELECT count(*) AS links FROM calendar_links WHERE COALESCE(last_used_at, created_at) < $1',
    [movedAt],
  );
  return [
    ...warnIf(
      unused!.links > 0,
      'calendar links',
      `${unused!.links} were not used since the change of SECRET_KEY`,
      'keep SECRET_KEY_PREVIOUS until none are left, since removing it ends them: each moves to SECRET_KEY when it is used',
    ),
    tokens + sessions > 0
      ? warn(
          'sign-ins',
          `${tokens} refresh tokens and ${sessions} sessions date from before the change of SECRET_KEY`,
          `keep SECRET_KEY_PREVIOUS until ${until}, since removing it ends them: each moves to SECRET_KEY when it is used`,
        )
      : ok('sign-ins', 'none date from before the change of SECRET_KEY'),
  ];
}

/** Checks that encrypted values can be decrypted. @param consequence what fails if some cannot */
export function checkEncryption(
  name: string,
  { current, previous, next, unknown }: EncryptionCounts,
  consequence: string,
): Check {
  const all = current + previous + next + unknown;
  if (unknown > 0)
    return fail(
      name,
      `${unknown} of ${all} cannot be decrypted, so that ${consequence}`,
      'set SECRET_KEY_PREVIOUS to the other SECRET_KEY that is in use',
    );
  if (previous > 0)
    return warn(
      name,
      `${previous} of ${all} still need SECRET_KEY_PREVIOUS`,
      'start a server with these settings, which moves them to SECRET_KEY; keep SECRET_KEY_PREVIOUS until then',
    );
  if (next > 0)
    return warn(
      name,
      `${next} of ${all} are already under the next SECRET_KEY, which is SECRET_KEY_PREVIOUS here`,
      'continue the change: make it SECRET_KEY here also',
    );
  return ok(name, `${all}, all under the current SECRET_KEY`);
}
