import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { decodeJwt } from 'jose';
import { errors, type Adapter, type AdapterPayload, type Interaction } from 'oidc-provider';
import { recordEventIf } from '../../audit/audit.js';
import { secondsOf } from '../../clients/access-durations.js';
import { USE_ONCE } from '../../auth/access-tokens.js';
import { eitherOf } from '../../crypto/hmac.js';
import { keyed, unexpired } from '../../database/sql.js';
import { stepGone } from '../provider/library.js';
import { because } from '../reasons/rejection-reasons.js';
import {
  MEMBER,
  rejectOrphans,
  SIGNED_IN,
  type Decision,
  OauthDatabase,
  type SessionRow,
  type UpstreamSession,
} from '../requests/oauth-database.js';

/** Finds a state; for an interaction also the member, consent and session, which the next step needs. */
const FIND_STATE = {
  name: 'find-state',
  text: `SELECT s.payload, s.key, s.consumed_at IS NOT NULL AS consumed, s.user_id, s.client_id, ${MEMBER},
  b.payload AS session_payload, b.key AS session_key, b.uid_key, b.upstream_subject_key, b.upstream_session_key
FROM oauth_state s LEFT JOIN ${keyed('users u', 'u.id = s.user_id')}
LEFT JOIN ${keyed('oauth_consents c', 'c.user_id = s.user_id AND c.client_id = s.client_id')}
LEFT JOIN ${keyed('oauth_sessions b', `b.uid_key = s.session_uid_key AND b.user_id = s.user_id AND ${unexpired('b.expires_at')}`)}
WHERE s.key IN ($1, $2) AND s.model = $3 AND ${unexpired('s.expires_at')}`,
};

const CONSUME = `UPDATE oauth_state SET consumed_at = now()
WHERE key IN ($1, $2) AND model = $3 AND consumed_at IS NULL RETURNING 1`;

/** Model name for the key of an ended interaction; differs from `Interaction`, so that no request can continue it. */
const ENDED = 'EndedInteraction';

/** SQL that ends a step, and keeps it for {@link OneTimeStates.completed}. @param session SQL of the key of the next step's session */
export const ending = (at: number, session = 'session_uid_key') => `UPDATE oauth_state
SET key = CASE key WHEN $${at} THEN $${at + 2}::bytea ELSE $${at + 3}::bytea END, session_uid_key = ${session},
  expires_at = LEAST(expires_at, now() + interval '10 minutes')
WHERE key IN ($${at}, $${at + 1}) AND model = 'Interaction'`;

const END = `${ending(1)} RETURNING 1`;

interface StateRow extends SessionRow {
  readonly consumed: boolean;
  readonly client_id: string | null;
  readonly session_payload: Buffer | null;
  readonly session_key: Buffer;
}

/** SQL that stores a state. Parameters from `at`: member, key, model, payload, seconds, client, key of the session. */
export const beginningState = (
  at: number,
) => `INSERT INTO oauth_state (user_id, key, model, payload, expires_at, client_id, session_uid_key)
SELECT $${at}::bigint, $${at + 1}, $${at + 2}, $${at + 3}, now() + make_interval(secs => $${at + 4}), $${at + 5}, $${at + 6}::bytea`;

const STORE_STATE = `WITH ${SIGNED_IN}, earlier AS (DELETE FROM oauth_state WHERE key = $10)
${beginningState(3)} WHERE $1::bigint IS NULL OR EXISTS (SELECT FROM signed_in)
ON CONFLICT (key) DO UPDATE SET user_id = EXCLUDED.user_id, payload = EXCLUDED.payload, expires_at = EXCLUDED.expires_at
RETURNING 1`;

/** Stores the member's decision once: of two forms sent at the same moment, only one finds the interaction undecided. */
const DECIDED = `WITH ${SIGNED_IN}, decided AS (
  UPDATE oauth_state SET key = $3, payload = $4, user_id = $1, consumed_at = now()
  WHERE key IN ($3, $5) AND model = 'Interaction' AND consumed_at IS NULL AND ${unexpired()}
    AND ($1::bigint IS NULL OR EXISTS (SELECT FROM signed_in)) RETURNING 1
)`;
const RECORDED = `${DECIDED}, recorded AS (${recordEventIf('decided', 6)})`;

/** SQL that sets a column of the consent to `earlier`, or to the new value if the app's details have changed. */
const keeping = (column: string, earlier: string) =>
  `${column} = CASE WHEN c.seen_as IS DISTINCT FROM EXCLUDED.seen_as THEN EXCLUDED.${column} ELSE ${earlier} END`;

/** An earlier decision stays valid for scopes that this request does not include, unless the app's details have changed. */
const CONSENTED = `${RECORDED}, remembered AS (
  INSERT INTO oauth_consents AS c (user_id, client_id, granted, rejected, redirect_origins, seen_as, duration, access_ends_at)
  SELECT $1, $14, $15::text[], $16::text[], $17::text[], $18, $19, now() + make_interval(secs => $20) FROM decided
  ON CONFLICT (user_id, client_id) DO UPDATE SET updated_at = now(), seen_as = EXCLUDED.seen_as,
    duration = EXCLUDED.duration, access_ends_at = EXCLUDED.access_ends_at,
    ${keeping('granted', 'ARRAY(SELECT unnest(c.granted) EXCEPT SELECT unnest($16) UNION SELECT unnest($15))')},
    ${keeping('rejected', 'ARRAY(SELECT unnest(c.rejected) EXCEPT SELECT unnest($15) UNION SELECT unnest($16))')},
    ${keeping(
      'redirect_origins',
      `CASE WHEN c.redirect_origins IS NULL THEN NULL
        ELSE ARRAY(SELECT unnest(c.redirect_origins) UNION SELECT unnest($17)) END`,
    )}
)`;

/** Stores encrypted interactions (a sign-in or consent in progress) and pushed authorization requests. */
export function stateAdapter(
  database: OauthDatabase,
  model: 'Interaction' | 'PushedAuthorizationRequest',
): Partial<Adapter> {
  const { keys, encryption } = database;
  const placeOf = (id: string) => [...eitherOf(keys.keysOf(model, id)), model];

  async function find(id: string): Promise<AdapterPayload | undefined> {
    const [row] = await database.read<StateRow>(FIND_STATE, placeOf(id));
    const payload = row && encryption.open<AdapterPayload>(row.payload, model, row.key);
    if (!payload) return undefined;
    const { signIn, authorization } = database.current ?? {};
    // Compares the clients here, because the library uses the pushed `state` and response mode before it compares the clients.
    const { clientId } = authorization ?? {};
    if (clientId !== undefined && isPushedByAnother(payload, clientId)) return undefined;
    if (row.user_id !== null) signIn?.relyOn(row.user_id, row, row.client_id);
    const { session_payload: session, session_key: sessionKey } = row;
    if (signIn && session) signIn.sessionRow = { ...row, payload: session, key: sessionKey };
    // The browser session is stored with the identity provider's session of a new sign-in.
    const login = payload.result?.login as { upstream?: UpstreamSession } | undefined;
    if (login && signIn) {
      signIn.upstream = login.upstream;
      signIn.cameUpstream = login.upstream !== undefined;
    }
    return { ...payload, jti: id, ...(row.consumed ? { consumed: true } : {}) };
  }

  /** @throws SessionNotFound if the member's sign-in is no longer valid */
  async function upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { signedIn, key, earlierKey, sealed } = sealing(database, model, id, payload);
    const { params, session } = payload;
    const sessionKey = session?.uid === undefined ? null : keys.keyOf('Session.uid', session.uid);
    const clientId = (params?.client_id as string | undefined) ?? null;
    const begun = [signedIn[0], key, model, sealed, expiresIn, clientId, sessionKey];
    const { authorization } = database.current!;
    if (authorization.ended) {
      authorization.begun = begun;
      return;
    }
    const written = await database.rows(STORE_STATE, [...signedIn, ...begun, earlierKey]);
    if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
  }

  async function consume(id: string): Promise<void> {
    if ((await database.rows(CONSUME, placeOf(id))).length === 0)
      throw new errors.InvalidRequestUri('the request_uri was used by another request');
  }

  /** Makes the request end the interaction later: in the statement that stores the session, or else by {@link endStep}. */
  async function destroy(id: string): Promise<void> {
    database.current!.authorization.ended = [
      ...eitherOf(keys.keysOf(model, id)),
      ...eitherOf(keys.keysOf(ENDED, id)),
    ];
  }

  return { find, upsert, consume, destroy };
}

/** Encrypts a state. @returns also its keys and the parameters of {@link SIGNED_IN} */
function sealing(
  { keys, encryption, current }: OauthDatabase,
  model: string,
  id: string,
  payload: AdapterPayload,
) {
  const { jti: _, ...stored } = payload;
  // The session's id is secret, and an interaction needs only the session's uid.
  if (stored.session) stored.session = { ...stored.session, cookie: undefined as never };
  const [key, earlierKey = null] = keys.keysOf(model, id);
  const signedIn = current!.signIn.signedIn(memberOf(payload));
  return { signedIn, key, earlierKey, sealed: encryption.seal(stored, model, key!) };
}

/** Stores the first decision and its effects; ignores later decisions. @throws SessionNotFound if step or sign-in ended; InvalidGrant */
export async function answer(
  database: OauthDatabase,
  interaction: Interaction,
  { event, consent }: Decision,
): Promise<void> {
  const payload = { ...interaction } as unknown as AdapterPayload;
  const { signedIn, key, earlierKey, sealed } = sealing(database, 'Interaction', interaction.uid, payload);
  const values: unknown[] = [...signedIn, key, sealed, earlierKey];
  if (event) values.push(...database.eventValues(event));
  if (consent) {
    const { clientId, granted, rejected, redirect_origins, seen_as, duration } = consent;
    const seconds = duration === 'once' ? 0 : duration && secondsOf(duration);
    values.push(clientId, granted, rejected, redirect_origins, seen_as, duration, seconds);
  }
  const text = consent ? CONSENTED : event ? RECORDED : DECIDED;
  const written = await rejectOrphans(database.rows(`${text} SELECT FROM decided`, values));
  if (written.length > 0) return;
  const found = await stateAdapter(database, 'Interaction').find!(interaction.uid);
  if (!found) throw stepGone();
  if (!found.consumed) throw new errors.SessionNotFound('the sign-in was ended');
}

/** Ends the interaction of a request that stored no session. @throws SessionNotFound if another request continued it */
export async function endStep(database: OauthDatabase, ended: readonly unknown[]): Promise<void> {
  if ((await database.rows(END, ended)).length === 0) throw stepGone();
}

/** @returns the member whose sign-in an interaction relies on; null if there is none */
function memberOf({ prompt, result, lastSubmission, session }: AdapterPayload): number | null {
  const before = prompt?.name === 'login' ? undefined : (lastSubmission?.login ?? session);
  const accountId = (result?.login ?? before)?.accountId;
  return accountId === undefined ? null : Number(accountId);
}

/** Tells whether another client issued a pushed request, which the library stores as a JWT. */
function isPushedByAnother({ request }: AdapterPayload, clientId: string): boolean {
  return request !== undefined && decodeJwt(request).iss !== clientId;
}

/** Stores the ids of client assertions and DPoP proofs: the insert decides which of two parallel uses is first. */
export function replayAdapter(database: OauthDatabase): Partial<Adapter> {
  const { keys } = database;
  const model = 'ReplayDetection';

  async function find(id: string): Promise<AdapterPayload | undefined> {
    const [used] = await database.read<StateRow>(FIND_STATE, [...eitherOf(keys.keysOf(model, id)), model]);
    return used && { jti: id };
  }

  async function upsert(id: string, _payload: AdapterPayload, expiresIn: number): Promise<void> {
    if ((await database.rows(USE_ONCE, [keys.everyKeyOf(model, id), expiresIn])).length === 0)
      throw because('proof_used', new errors.InvalidRequest('the proof or assertion was used before'));
  }

  return { find, upsert };
}

export type OneTimeModel = 'UpstreamSignIn' | 'PasskeySignIn' | 'PasskeyRegistration';

const PUT = `INSERT INTO oauth_state (key, model, payload, expires_at) VALUES ($1, $2, $3, now() + make_interval(secs => $4))`;

const TAKE = `DELETE FROM oauth_state WHERE key IN ($1, $2) AND model = $3 AND ${unexpired()} RETURNING key, payload`;

/** Finds an ended step, with the open steps of the same member, app and session. */
const FIND_ENDED = `SELECT e.key, e.payload, n.key AS open_key, n.payload AS open_payload, n.session_uid_key
FROM oauth_state e LEFT JOIN oauth_state n ON n.user_id = e.user_id AND n.client_id = e.client_id AND n.session_uid_key = e.session_uid_key
  AND n.model = 'Interaction' AND n.consumed_at IS NULL AND ${unexpired('n.expires_at')}
WHERE e.key IN ($1, $2) AND e.model = 'Interaction' AND ${unexpired('e.expires_at')} ORDER BY n.expires_at DESC LIMIT 20`;

interface EndedRow {
  readonly key: Buffer;
  readonly payload: Buffer;
  readonly open_key: Buffer | null;
  readonly open_payload: Buffer;
  readonly session_uid_key: Buffer;
}

interface CompletedStep {
  readonly params: Readonly<Record<string, unknown>>;
  readonly open?: { readonly uid: string; readonly sessionKey: Buffer } | undefined;
}

/** Stores encrypted state for a browser's later request. Only one of several parallel requests can {@link OneTimeStates.take} it. */
@Injectable()
export class OneTimeStates {
  constructor(private readonly database: OauthDatabase) {}

  /** @param id the secret key of the state: base64url, at least 128 random bits */
  async put(model: OneTimeModel, id: string, state: object, seconds: number): Promise<void> {
    const { key, payload } = this.seal(model, id, state);
    await this.database.rows(PUT, [key, model, payload, seconds]);
  }

  take<T>(model: OneTimeModel, id: string): Promise<T | undefined> {
    return this.find<T>(TAKE, model, id, model);
  }

  seal(model: string, id: string, state: object): { key: Buffer; payload: Buffer } {
    const key = this.database.keys.keyOf(model, id);
    return { key, payload: this.database.encryption.seal(state, model, key) };
  }

  /** Decrypts the state that a statement returns. @param statement $1 and $2: keys; then `more` */
  async find<T>(
    statement: string,
    model: string,
    id: string,
    ...more: readonly unknown[]
  ): Promise<T | undefined> {
    const values = [...eitherOf(this.database.keys.keysOf(model, id)), ...more];
    const [row] = await this.database.rows<Pick<StateRow, 'key' | 'payload'>>(statement, values);
    return row && this.database.encryption.open<T>(row.payload, model, row.key);
  }

  /** @returns undefined if the step has not ended, or its state has expired, at the latest 10 minutes after the end */
  async completed(uid: string): Promise<CompletedStep | undefined> {
    const { keys: tokenKeys, encryption } = this.database;
    const keys = tokenKeys.keysOf(ENDED, uid);
    const rows = await this.database.rows<EndedRow>(FIND_ENDED, eitherOf(keys));
    const [row] = rows;
    if (!row) return undefined;
    const sealedUnder = tokenKeys.keysOf('Interaction', uid)[keys.findIndex((key) => key.equals(row.key))]!;
    const open = (payload: Buffer, key: Buffer) =>
      encryption.open<AdapterPayload>(payload, 'Interaction', key);
    const params = open(row.payload, sealedUnder)?.params;
    if (!params) return undefined;
    for (const { open_key: key, open_payload, session_uid_key: sessionKey } of rows) {
      const next = key && open(open_payload, key);
      if (next && isDeepStrictEqual(next.params, params))
        return { params, open: { uid: next.returnTo!.split('/').at(-1)!, sessionKey } };
    }
    return { params };
  }
}
