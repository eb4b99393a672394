import { errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import { recordEventIf, type NewAuthEvent } from '../../audit/audit.js';
import { eitherOf } from '../../crypto/hmac.js';
import { keyed, unexpired } from '../../database/sql.js';
import { SqlParameters } from '../../database/sql-parameters.js';
import { stepGone } from '../provider/library.js';
import { LIFETIMES } from '../lifetimes.js';
import {
  MEMBER,
  rejectOrphans,
  SIGNED_IN,
  type Authorization,
  type NewGrant,
  type NewToken,
  type OauthDatabase,
  type SessionRow,
} from '../requests/oauth-database.js';
import { beginningState, ending } from './state.adapter.js';

const findingBy = (column: 'key' | 'uid_key') => ({
  name: `find-session-by-${column}`,
  text: `SELECT s.payload, s.uid_key, s.key, s.user_id, s.upstream_subject_key, s.upstream_session_key, ${MEMBER}
FROM oauth_sessions s LEFT JOIN ${keyed('users u', 'u.id = s.user_id')}
LEFT JOIN ${keyed('oauth_consents c', 'c.user_id = s.user_id AND c.client_id = $3')}
WHERE s.${column} IN ($1, $2) AND ${unexpired('s.expires_at')}`,
});
const FIND = { key: findingBy('key'), uid_key: findingBy('uid_key') };

/** A session ends $7 seconds after its last use, but at most `maxSession` seconds after the sign-in ($6). */
const EXPIRES = `LEAST(now() + make_interval(secs => $7), to_timestamp($6) + make_interval(secs => ${LIFETIMES.maxSession}))`;
const IF_SIGNED_IN = '($1::bigint IS NULL OR EXISTS (SELECT FROM signed_in))';

/** Stores a session if the appended condition holds. */
const INSERT = `INSERT INTO oauth_sessions (user_id, uid_key, key, payload, signed_in_at, expires_at, user_agent, ip,
  upstream_subject_key, upstream_session_key, clients)
SELECT $1, $3, $4, $5, to_timestamp($6), ${EXPIRES}, $8, $9::inet, $10::bytea, $11::bytea, $12::jsonb WHERE`;

const UPDATE = `UPDATE oauth_sessions SET user_id = $1, uid_key = $3, key = $4, payload = $5, signed_in_at = to_timestamp($6),
  expires_at = ${EXPIRES}, last_seen_at = now(), user_agent = COALESCE($8, user_agent), ip = COALESCE($9::inet, ip),
  upstream_subject_key = $10::bytea, upstream_session_key = $11::bytea, clients = $12::jsonb
WHERE uid_key IN ($13, $14) AND`;

/** Stores a grant and its code if the consent still allows the scopes. The lock delays a request that narrows the consent. */
function authorizing(parameters: SqlParameters, grant: NewGrant, code: NewToken, condition: string): string {
  const id = parameters.add(grant.id);
  const clientId = parameters.add(grant.clientId);
  const chosen = parameters.add(grant.chosen, 'text');
  return `consented AS (
  SELECT access_ends_at, duration FROM oauth_consents
  WHERE user_id = $1::bigint AND client_id = ${clientId} AND granted @> ${parameters.add(grant.scopes, 'text[]')} FOR SHARE
), granted AS (
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at, access_ends_at)
  SELECT ${id}, $1, ${clientId}, ${parameters.add(grant.payload, 'jsonb')},
    now() + make_interval(secs => ${parameters.add(grant.idleSeconds)} + 86400),
    LEAST(now() + make_interval(secs => ${parameters.add(grant.seconds)}),
      CASE WHEN ${chosen} IS NULL OR c.duration = NULLIF(${chosen}, 'once') THEN c.access_ends_at END)
  FROM consented c WHERE ${condition} RETURNING id
), code AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT ${parameters.add(code.key)}, ${parameters.add(code.model)}, id, ${parameters.add(code.payload, 'jsonb')},
    now() + make_interval(secs => ${parameters.add(code.seconds)}) FROM granted
)`;
}

/** Stores nothing if the sign-in ended, or another request continued the step. Stores no grant or code that the consent does not allow. */
function storing(
  parameters: SqlParameters,
  isFound: boolean,
  { ended, begun, grant, code }: Authorization,
): string {
  const condition = ended ? 'EXISTS (SELECT FROM ended)' : IF_SIGNED_IN;
  const parts = [SIGNED_IN];
  if (ended)
    parts.push(`ended AS (${ending(parameters.addAll(ended), '$3::bytea')} AND ${IF_SIGNED_IN} RETURNING 1)`);
  if (begun)
    parts.push(`begun AS (${beginningState(parameters.addAll(begun))} WHERE ${condition} RETURNING 1)`);
  if (grant && code) parts.push(authorizing(parameters, grant, code, condition));
  parts.push(`session AS (${isFound ? UPDATE : INSERT} ${condition})`);
  const outcome = code ? 'granted' : begun ? 'begun' : undefined;
  return `WITH ${parts.join(', ')} SELECT ${outcome ? `EXISTS (SELECT FROM ${outcome})` : 'true'} AS is_stored,
  ${ended ? `${IF_SIGNED_IN} AND NOT ${condition}` : 'false'} AS is_gone`;
}

/**
 * Runs after the session is stored. A logout token's request writes a mark before it queries sessions, so either this statement finds the
 * mark, or that request finds the session. The mark of a subject ends only the subject's earlier sessions.
 */
const END_IF_ENDED = `DELETE FROM oauth_sessions s WHERE s.uid_key = $1 AND EXISTS (
  SELECT FROM oauth_state e WHERE e.key IN ($2, $3) AND ${unexpired('e.expires_at')}
    AND (e.key = $2 OR EXTRACT(epoch FROM e.expires_at) - ${LIFETIMES.upstreamEnd} >= $4)) RETURNING 1`;

const END = 'DELETE FROM oauth_sessions WHERE key IN ($1, $2) RETURNING 1';
const SIGN_OUT = `WITH ended AS (${END}), recorded AS (${recordEventIf('ended', 3)}) SELECT FROM ended`;

/**
 * Stores encrypted browser sessions, and finds them by id or uid. To save statements, reads the member and the consent with the session,
 * and stores the grant and the code with it.
 */
export function sessionAdapter(database: OauthDatabase): Partial<Adapter> {
  const { keys, encryption } = database;

  async function findBy(key: 'key' | 'uid_key', ids: readonly Buffer[]): Promise<AdapterPayload | undefined> {
    const { signIn, authorization } = database.current ?? {};
    const known = signIn?.sessionRow;
    const values = [...eitherOf(ids), authorization?.clientId ?? null];
    const [row] = ids.some((id) => known?.[key].equals(id))
      ? [known]
      : await database.read<SessionRow>(FIND[key], values);
    const payload = row && encryption.open<AdapterPayload>(row.payload, 'Session', row.uid_key, row.key);
    if (!payload || !signIn) return payload;
    const { user_id: userId, upstream_subject_key: subject, upstream_session_key: session } = row;
    signIn.sessionUid = payload.uid!;
    signIn.upstream = subject
      ? { subject: subject.toString('base64url'), session: session?.toString('base64url') ?? null }
      : undefined;
    if (userId !== null && row !== known) signIn.relyOn(userId, row, authorization?.clientId);
    return payload;
  }

  async function find(id: string): Promise<AdapterPayload | undefined> {
    const payload = await findBy('key', keys.keysOf('Session', id));
    return payload && { ...payload, jti: id };
  }

  const findByUid = (uid: string) => findBy('uid_key', keys.keysOf('Session.uid', uid));

  /** @throws SessionNotFound if step, sign-in or consent ended; InvalidGrant if member or client was deleted */
  async function upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { signIn, authorization, userAgent, ip } = database.current!;
    const { jti: _, ...stored } = payload;
    const uid = payload.uid!;
    const rowKeys = [keys.keyOf('Session.uid', uid), keys.keyOf('Session', id)] as const;
    const userId = payload.accountId === undefined ? null : Number(payload.accountId);
    const upstream = userId === null ? undefined : signIn.upstream;
    const ofSubject = upstream ? Buffer.from(upstream.subject, 'base64url') : null;
    const ofSession = upstream?.session == null ? null : Buffer.from(upstream.session, 'base64url');
    const isFound = signIn.sessionUid === uid;
    const parameters = new SqlParameters([
      ...signIn.signedIn(userId),
      ...rowKeys,
      encryption.seal(stored, 'Session', ...rowKeys),
      // If the time of authentication is unknown, the lifetime starts at the session's creation.
      userId === null ? null : payload.loginTs || payload.iat!,
      expiresIn,
      userAgent?.slice(0, 300) ?? null,
      ip ?? null,
      ofSubject,
      ofSession,
      JSON.stringify(userId === null ? {} : clientsOf(payload)),
      ...(isFound ? eitherOf(keys.keysOf('Session.uid', uid)) : []),
    ]);
    const text = storing(parameters, isFound, authorization);
    authorization.code = authorization.ended = authorization.begun = undefined;
    const write = database.rows<{ is_stored: boolean; is_gone: boolean }>(text, parameters.values);
    const [outcome] = await rejectOrphans(write);
    if (outcome!.is_gone) throw stepGone();
    if (!outcome!.is_stored) throw new errors.SessionNotFound('the sign-in was ended');
    signIn.sessionUid = uid;
    if (!signIn.cameUpstream || !upstream) return;
    const ends = [rowKeys[0], ofSession, ofSubject, upstream.at ?? 0];
    if ((await database.rows(END_IF_ENDED, ends)).length === 0) return;
    // The member must sign in again, so the app gets no error.
    throw Object.assign(new errors.SessionNotFound('the sign-in was ended'), { allow_redirect: false });
  }

  return { find, findByUid, upsert, destroy: (id) => endSession(database, id) };
}

/** Ends a browser session. @param event recorded if the session existed */
export async function endSession(database: OauthDatabase, id: string, event?: NewAuthEvent): Promise<void> {
  const candidates = eitherOf(database.keys.keysOf('Session', id));
  if (event) await database.rows(SIGN_OUT, [...candidates, ...database.eventValues(event)]);
  else await database.rows(END, candidates);
}

/** Returns the `sid` of each client of the session; the database needs them to record the session's end for each client. */
function clientsOf({ authorizations = {} }: AdapterPayload): Record<string, string> {
  return Object.fromEntries(
    Object.entries(authorizations).flatMap(([id, { sid }]) => (sid === undefined ? [] : [[id, sid]])),
  );
}
