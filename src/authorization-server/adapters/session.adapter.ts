import { errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import { recordEventIf } from '../../audit/audit.js';
import { eitherOf } from '../../crypto/hmac.js';
import { SIGN_INS_VALID_SINCE, unexpired } from '../../database/sql.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import { refusingOrphans, SIGNED_IN, type OauthDatabase } from '../requests/oauth-database.js';

/** Also reads what an authorization needs next: whether the member is active, and what they allowed the client ($3), if there is one. */
const findingBy = (column: 'key' | 'uid_key') => ({
  name: `find-session-by-${column}`,
  text: `SELECT s.payload, s.uid_key, s.key, s.user_id, s.upstream_subject_key, s.upstream_session_key,
  ${SIGN_INS_VALID_SINCE} AS valid_since, u.disabled_at IS NULL AS active, c.granted, c.rejected, c.redirect_origins
FROM oauth_sessions s LEFT JOIN users u ON u.id = s.user_id
LEFT JOIN oauth_consents c ON c.user_id = s.user_id AND c.client_id = $3 WHERE s.${column} IN ($1, $2) AND ${unexpired('s.expires_at')}`,
});
const FIND = { key: findingBy('key'), uid_key: findingBy('uid_key') };

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

/** It ends when it has not been used for so long ($7), and a while after the sign-in ($6) in any case. */
const EXPIRES = `LEAST(now() + make_interval(secs => $7), to_timestamp($6) + make_interval(secs => ${LIFETIMES.longestSession}))`;
const IF_SIGNED_IN = '($1::bigint IS NULL OR EXISTS (SELECT FROM signed_in))';

const INSERT = `INSERT INTO oauth_sessions (user_id, uid_key, key, payload, signed_in_at, expires_at, user_agent, ip,
  upstream_subject_key, upstream_session_key)
SELECT $1, $3, $4, $5, to_timestamp($6), ${EXPIRES}, $8, $9::inet, $10::bytea, $11::bytea WHERE ${IF_SIGNED_IN}`;

const UPDATE = `UPDATE oauth_sessions SET user_id = $1, uid_key = $3, key = $4, payload = $5, signed_in_at = to_timestamp($6),
  expires_at = ${EXPIRES}, last_seen_at = now(), user_agent = COALESCE($8, user_agent), ip = COALESCE($9::inet, ip),
  upstream_subject_key = $10::bytea, upstream_session_key = $11::bytea
WHERE uid_key IN ($12, $13) AND ${IF_SIGNED_IN}`;

/**
 * Stores everything that authorizing a signed-in member writes: grant, code and session, or nothing where the sign-in is no longer valid,
 * and the session alone where the consent no longer allows the grant: narrowing the consent waits until this is stored, and then narrows it.
 *
 * @param session stores the session
 * @param at position of the grant's parameters, which the code's follow
 */
const authorizing = (session: string, at: number) => `WITH ${SIGNED_IN}, consented AS (
  SELECT FROM oauth_consents WHERE user_id = $1::bigint AND client_id = $${at + 1} AND granted @> $${at + 3}::text[] FOR SHARE
), granted AS (
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT $${at}, $1, $${at + 1}, $${at + 2}::jsonb, now() + make_interval(secs => ${LIFETIMES.grant})
  WHERE EXISTS (SELECT FROM signed_in) AND EXISTS (SELECT FROM consented) RETURNING id
), code AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT $${at + 4}, $${at + 5}, id, $${at + 6}::jsonb, now() + make_interval(secs => $${at + 7}) FROM granted
), session AS (
  ${session}
) SELECT FROM granted`;

const STORE = {
  new: { alone: `WITH ${SIGNED_IN} ${INSERT}`, withCode: authorizing(INSERT, 12) },
  found: { alone: `WITH ${SIGNED_IN} ${UPDATE}`, withCode: authorizing(UPDATE, 14) },
};

/**
 * Run after the session is stored: a logout token leaves its mark before it looks for sessions, so one of the two always finds the
 * other. Ending a subject ends the sessions from before that; ending a session ends whatever came of it.
 */
const END_IF_ENDED = `DELETE FROM oauth_sessions s WHERE s.uid_key = $1 AND EXISTS (
  SELECT FROM oauth_state e WHERE e.key IN ($2, $3) AND ${unexpired('e.expires_at')}
    AND (e.key = $2 OR EXTRACT(epoch FROM e.expires_at) - ${LIFETIMES.upstreamEnd} >= $4)) RETURNING 1`;

const END = 'DELETE FROM oauth_sessions WHERE key IN ($1, $2) RETURNING 1';
const SIGN_OUT = `WITH ended AS (${END}), recorded AS (${recordEventIf('ended', 3)}) SELECT FROM ended`;

/**
 * Browser sessions: encrypted, found by the keys of their id and of their uid.
 *
 * The library reads session, member and consent one by one, and stores grant, code and session one by one. One statement reads what it
 * will ask for, and what it stores is held until it stores the last of them, the session.
 */
export function sessionAdapter(database: OauthDatabase): Partial<Adapter> {
  const { keys, encryption } = database;

  async function findBy(key: 'key' | 'uid_key', ids: readonly Buffer[]): Promise<AdapterPayload | undefined> {
    const { current } = database;
    const values = [...eitherOf(ids), current?.clientId ?? null];
    const [row] = await database.read<SessionRow>(FIND[key], values);
    const payload = row && encryption.open<AdapterPayload>(row.payload, 'Session', row.uid_key, row.key);
    if (!payload || !current) return payload;
    const { user_id: userId, upstream_subject_key: subject, upstream_session_key: session } = row;
    current.session = { uid: payload.uid!, deleted: false };
    current.upstream = subject
      ? { subject: subject.toString('base64url'), session: session?.toString('base64url') ?? null }
      : undefined;
    if (userId === null) return payload;
    current.relyOn(userId, row.valid_since);
    const { active, granted, rejected, redirect_origins } = row;
    const consent = granted === null ? undefined : { granted, rejected, redirect_origins };
    if (current.clientId !== undefined) current.member = { userId, active, consent };
    return payload;
  }

  async function find(id: string): Promise<AdapterPayload | undefined> {
    const payload = await findBy('key', keys.keysOf('Session', id));
    return payload && { ...payload, jti: id };
  }

  const findByUid = (uid: string) => findBy('uid_key', keys.keysOf('Session.uid', uid));

  /**
   * A session that was ended since it was read is not restored, nor is one stored for a sign-in that was ended.
   *
   * @throws SessionNotFound if there is a code whose sign-in is no longer valid, or whose consent was narrowed, and InvalidGrant if member or
   * client is gone
   */
  async function upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const request = database.current!;
    const { jti: _, ...stored } = payload;
    const uid = payload.uid!;
    const rowKeys = [keys.keyOf('Session.uid', uid), keys.keyOf('Session', id)] as const;
    const userId = payload.accountId === undefined ? null : Number(payload.accountId);
    const upstream = userId === null ? undefined : request.upstream;
    const ofSubject = upstream ? Buffer.from(upstream.subject, 'base64url') : null;
    const ofSession = upstream?.session == null ? null : Buffer.from(upstream.session, 'base64url');
    const isFound = request.session?.uid === uid && !request.session.deleted;
    const values: unknown[] = [
      ...request.signedIn(userId),
      ...rowKeys,
      encryption.seal(stored, 'Session', ...rowKeys),
      // Where it is not known when the member authenticated, the session lasts as if that was when it began.
      userId === null ? null : payload.loginTs || payload.iat!,
      expiresIn,
      request.userAgent?.slice(0, 300) ?? null,
      request.ip ?? null,
      ofSubject,
      ofSession,
      ...(isFound ? eitherOf(keys.keysOf('Session.uid', uid)) : []),
    ];
    const { grant, code } = request;
    const texts = STORE[isFound ? 'found' : 'new'];
    if (grant && code) {
      request.code = undefined;
      values.push(grant.id, grant.clientId, grant.payload, grant.scopes);
      values.push(code.key, code.model, code.payload, code.seconds);
      const written = await refusingOrphans(database.rows(texts.withCode, values));
      if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
    } else await database.rows(texts.alone, values);
    request.session = { uid, deleted: false };
    if (!request.cameUpstream || !upstream) return;
    const ends = [rowKeys[0], ofSession, ofSubject, upstream.at ?? 0];
    const ended = await database.rows(END_IF_ENDED, ends);
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
