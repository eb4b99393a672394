import { errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import { recordEventIf } from '../../audit/audit.js';
import { eitherOf } from '../../crypto/token-keys.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import type { StoredSession } from '../requests/authorization-request.js';
import type { ModelStore } from '../requests/oauth-database.js';
import { sessionEnds, SIGNED_IN } from '../requests/statement-parts.js';

/** Also reads what an authorization needs next: whether the member is active, and what they allowed the client ($3), if there is one. */
const findBy = (column: 'key' | 'uid_key') => ({
  name: `find-session-by-${column}`,
  text: `SELECT s.payload, s.uid_key, s.key, s.user_id, s.upstream_subject_key, s.upstream_session_key,
  ${SIGN_INS_VALID_SINCE} AS valid_since, u.disabled_at IS NULL AS active, c.granted, c.rejected, c.redirect_origins
FROM oauth_sessions s LEFT JOIN users u ON u.id = s.user_id
LEFT JOIN oauth_consents c ON c.user_id = s.user_id AND c.client_id = $3 WHERE s.${column} IN ($1, $2) AND s.expires_at > now()`,
});
const [FIND_SESSION, FIND_SESSION_BY_UID] = [findBy('key'), findBy('uid_key')];

interface SessionRow {
  payload: Buffer;
  uid_key: Buffer;
  key: Buffer;
  user_id: number | null;
  upstream_subject_key: Buffer | null;
  upstream_session_key: Buffer | null;
  valid_since: number | null;
  active: boolean;
  granted: string[] | null;
  rejected: string[];
  redirect_origins: string[] | null;
}

const INSERT_SESSION = `WITH ${SIGNED_IN}
INSERT INTO oauth_sessions (user_id, uid_key, key, payload, signed_in_at, expires_at, user_agent, ip,
  upstream_subject_key, upstream_session_key)
SELECT $1, $3, $4, $5, to_timestamp($6), ${sessionEnds('$6', '$7')}, $8, $9::inet, $10::bytea, $11::bytea
WHERE $1::bigint IS NULL OR EXISTS (SELECT FROM signed_in)`;

const UPDATE_SESSION = `WITH ${SIGNED_IN}
UPDATE oauth_sessions SET user_id = $1, uid_key = $3, key = $4, payload = $5, signed_in_at = to_timestamp($6),
  expires_at = ${sessionEnds('$6', '$7')}, last_seen_at = now(), user_agent = COALESCE($8, user_agent), ip = COALESCE($9::inet, ip),
  upstream_subject_key = $12::bytea, upstream_session_key = $13::bytea
WHERE uid_key IN ($10, $11) AND ($1::bigint IS NULL OR EXISTS (SELECT FROM signed_in))`;

/**
 * Run after the session is stored: a logout token leaves its mark before it looks for sessions, so one of the two always finds the
 * other. Ending a subject ends the sessions from before that; ending a session ends whatever came of it.
 */
const END_IF_ENDED = `DELETE FROM oauth_sessions s WHERE s.uid_key = $1 AND EXISTS (
  SELECT FROM oauth_state e WHERE e.key IN ($2, $3) AND e.expires_at > now()
    AND (e.key = $2 OR EXTRACT(epoch FROM e.expires_at) - ${LIFETIMES.upstreamEnd} >= $4)) RETURNING 1`;

const END = 'DELETE FROM oauth_sessions WHERE key IN ($1, $2) RETURNING 1';
const SIGN_OUT = `WITH ended AS (${END}), recorded AS (${recordEventIf('ended', 3)}) SELECT FROM ended`;

/** Browser sessions: encrypted, found by the keys of their id and of their uid. */
export function sessionAdapter({ database, keys, encryption }: ModelStore): Partial<Adapter> {
  /** @param id as presented by the browser, if it was */
  function open(row: SessionRow | undefined, id?: string): AdapterPayload | undefined {
    const payload = row && encryption.open<AdapterPayload>(row.payload, 'Session', row.uid_key, row.key);
    if (!payload) return undefined;
    const { current } = database;
    if (current) {
      current.session = { uid: payload.uid!, deleted: false };
      current.upstream = row.upstream_subject_key
        ? {
            subject: row.upstream_subject_key.toString('base64url'),
            session: row.upstream_session_key?.toString('base64url') ?? null,
          }
        : undefined;
      if (row.user_id !== null) current.relyOn(row.user_id, row.valid_since);
    }
    return id === undefined ? payload : { ...payload, jti: id };
  }

  async function find(id: string): Promise<AdapterPayload | undefined> {
    const own = eitherOf(keys.keysOf('Session', id));
    const authorization = database.current?.authorization;
    const values = [...own, authorization?.clientId ?? null];
    const [row] = await database.read<SessionRow>(FIND_SESSION, values);
    const session = open(row, id);
    if (authorization && session && row?.user_id != null) {
      const { user_id: userId, active, granted, rejected, redirect_origins } = row;
      const consent = granted === null ? undefined : { granted, rejected, redirect_origins };
      authorization.found({ userId, active, consent });
    }
    return session;
  }

  async function findByUid(uid: string): Promise<AdapterPayload | undefined> {
    const own = eitherOf(keys.keysOf('Session.uid', uid));
    const [row] = await database.read<SessionRow>(FIND_SESSION_BY_UID, [...own, null]);
    return open(row);
  }

  /** A session that was ended since it was read is not restored, nor is one stored for a sign-in that was ended. */
  async function upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const request = database.current!;
    const { jti: _, ...stored } = payload;
    const uid = payload.uid!;
    const rowKeys = [keys.keyOf('Session.uid', uid), keys.keyOf('Session', id)] as const;
    const userId = payload.accountId === undefined ? null : Number(payload.accountId);
    const session: StoredSession = [
      ...rowKeys,
      encryption.seal(stored, 'Session', ...rowKeys),
      // Where it is not known when the member authenticated, the session lasts as if that was when it began.
      userId === null ? null : payload.loginTs || payload.iat!,
      expiresIn,
      request.userAgent?.slice(0, 300) ?? null,
      request.ip ?? null,
      ...eitherOf(keys.keysOf('Session.uid', uid)),
    ];
    const signedIn = request.signedIn(userId);
    const upstream = userId === null ? undefined : request.upstream;
    const ofSubject = upstream ? Buffer.from(upstream.subject, 'base64url') : null;
    const ofSession = upstream?.session == null ? null : Buffer.from(upstream.session, 'base64url');
    const isFound = request.session?.uid === uid && !request.session.deleted;
    if (isFound && request.authorization?.isPending)
      await request.authorization.store(database, signedIn, session);
    else if (isFound) await database.rows(UPDATE_SESSION, [...signedIn, ...session, ofSubject, ofSession]);
    else await database.rows(INSERT_SESSION, [...signedIn, ...session.slice(0, 7), ofSubject, ofSession]);
    request.session = { uid, deleted: false };
    if (!request.cameUpstream || !upstream) return;
    const values = [rowKeys[0], ofSession, ofSubject, upstream.at ?? 0];
    const ended = await database.rows(END_IF_ENDED, values);
    if (ended.length === 0) return;
    request.session.deleted = true;
    throw new errors.SessionNotFound('the sign-in was ended');
  }

  /** Called at sign-out, and when the session gets a new id, after which it is stored again. */
  async function destroy(id: string): Promise<void> {
    const { session, signOut } = database.current ?? {};
    const candidates = eitherOf(keys.keysOf('Session', id));
    const deleted = signOut
      ? await database.rows(SIGN_OUT, [...candidates, ...database.eventValues(signOut)])
      : await database.rows(END, candidates);
    if (session) session.deleted = deleted.length > 0;
  }

  return { find, findByUid, upsert, destroy };
}
