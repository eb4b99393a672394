import { errors, type AdapterPayload, type KoaContextWithOIDC } from 'oidc-provider';
import { recordEventIf, type NewAuthEvent } from '../../audit/audit.js';
import { accessClientOf, idleSeconds } from '../../clients/access-durations.js';
import { SqlParameters } from '../../database/sql-parameters.js';
import { LIFETIMES } from '../lifetimes.js';
import type { EndedAccess } from '../reasons/explanations.js';
import { because } from '../reasons/rejection-reasons.js';
import { openResponse, encryptResponse, type KeptResponse } from './kept-response.js';
import type { NewToken, OauthDatabase } from './oauth-database.js';
import { endGrant, findToken, payloadOf, type StoredToken } from './stored-token.js';

interface Accepted {
  readonly step: 'accepted';
  readonly token: StoredToken;
  /** Whether the token is a refresh token that is not rotated, so the client can use it again. */
  readonly staysValid: boolean;
  readonly issued: NewToken[];
}

type Progress =
  | { readonly step: 'started'; readonly token?: undefined }
  | { readonly step: 'read'; readonly token: StoredToken }
  | Accepted;

/**
 * Exchanges a code or refresh token. The library reads, consumes and issues tokens through adapters; {@link commit} stores the result in
 * one statement, since a crash between several writes would sign the member out.
 */
export class TokenExchange {
  static readonly #exchanges = new WeakMap<object, TokenExchange>();

  #progress: Progress = { step: 'started' };
  ended: EndedAccess | undefined;

  constructor(
    private readonly database: OauthDatabase,
    private readonly ctx: KoaContextWithOIDC,
  ) {
    TokenExchange.#exchanges.set(ctx, this);
  }

  /** Finds the exchange of a request; undefined if the request exchanges no token. */
  static of(ctx: KoaContextWithOIDC | undefined): TokenExchange | undefined {
    return ctx && TokenExchange.#exchanges.get(ctx);
  }

  get token(): StoredToken | undefined {
    return this.#progress.token;
  }

  /** Finds the code or token. The library sees a used token as unused while the server keeps its response. */
  async read(model: string, id: string): Promise<AdapterPayload | undefined> {
    const { token, ended } = await findToken(this.database, model, id);
    this.ended = ended;
    if (!token) return undefined;
    this.#progress = { step: 'read', token };
    return payloadOf(token, token.consumed && !token.kept);
  }

  /** Accepts the token in memory; {@link commit} stores its use. @param staysValid see {@link Accepted} */
  accept(staysValid = false): void {
    const { step, token } = this.#progress;
    if (step !== 'read') throw new Error(`a token exchange in the step ${step} cannot accept a token`);
    this.#progress = { step: 'accepted', token, staysValid, issued: [] };
  }

  /** Keeps a new token in memory for {@link commit}. */
  issue(token: NewToken): void {
    if (this.#progress.step !== 'accepted')
      throw new Error(`a token exchange in the step ${this.#progress.step} cannot issue a token`);
    this.#progress.issued.push(token);
  }

  /** Stores the exchange, or repeats a kept response. @throws InvalidGrant if the token was already used, or its grant has ended */
  async commit(): Promise<void> {
    const progress = this.#progress;
    if (progress.step !== 'accepted')
      throw new Error(`a token exchange in the step ${progress.step} cannot be stored`);
    const { token, staysValid } = progress;
    if (token.kept) return this.#repeat(token, token.kept);
    this.#tellEnd(token);
    const response = staysValid ? null : await encryptResponse(this.ctx);
    const event = this.database.eventValues(buildEvent(this.ctx));
    const keys = staysValid ? this.database.keys.keysOf(token.model, token.id) : [token.key];
    const { text, values } = storing(progress, keys, response, idleOf(this.ctx), event);
    const [stored] = await this.database.rows<Pick<StoredToken, 'seconds_left'>>(text, values);
    if (stored) return this.#tellEnd(stored); // the member may have changed the end since `read`
    // Another request was first: repeat its response if the server keeps it, else end the grant.
    const { token: now, ended } = await findToken(this.database, token.model, token.id);
    this.ended = ended;
    if (now?.kept) return this.#repeat(now, now.kept);
    await endGrant(this.database, token.grant_id, this.reuse);
    throw usedMeanwhile('the token was used by another request');
  }

  get reuse(): NewAuthEvent {
    return {
      type: 'token.reused',
      actor: 'client',
      clientId: this.ctx.oidc.client!.clientId,
      userId: this.token!.user_id,
      details: { grant: this.token!.grant_id },
    };
  }

  async #repeat(token: StoredToken, kept: KeptResponse): Promise<void> {
    const body = await openResponse(this.ctx, kept);
    if (!body) throw usedMeanwhile('the token was used a moment ago');
    this.ctx.body = body;
    this.#tellEnd(token); // the member may have changed the end since the first response
  }

  #tellEnd({ seconds_left: left }: Pick<StoredToken, 'seconds_left'>): void {
    const { refresh_token_expires_in: _, ...body } = this.ctx.body as Record<string, unknown>;
    const hasEnd = body.refresh_token !== undefined && left !== null;
    this.ctx.body = hasEnd ? { ...body, refresh_token_expires_in: Math.max(1, Math.floor(left)) } : body;
  }
}

const usedMeanwhile = (detail: string) => because('token_used_meanwhile', new errors.InvalidGrant(detail));

/** Seconds without use after which the refresh token expires; null if the response has no refresh token. */
function idleOf({ oidc, body }: KoaContextWithOIDC): number | null {
  if ((body as { refresh_token?: string }).refresh_token === undefined) return null;
  const isBound = oidc.entities.RefreshToken?.jkt !== undefined;
  return idleSeconds(accessClientOf(oidc.client!, isBound));
}

function buildEvent({ oidc }: KoaContextWithOIDC): NewAuthEvent {
  const { client, account, grant, accessToken, params } = oidc;
  return {
    type: params!.grant_type === 'refresh_token' ? 'token.refreshed' : 'token.issued',
    actor: 'client',
    clientId: client!.clientId,
    ...(account ? { userId: Number(account.accountId) } : {}),
    details: { grant: grant?.jti ?? '', scope: accessToken?.scope ?? '' },
  };
}

/**
 * Builds the statement that stores all results, or none if the token was consumed or its grant has ended. A token that stays valid moves
 * to the current SECRET_KEY. Separate parameters for each issued token are cheaper than arrays.
 * @param keys storage keys under which the token may be, the current one first
 */
function storing(
  { token, staysValid, issued }: Accepted,
  keys: readonly Buffer[],
  response: Buffer | null,
  idleSeconds: number | null,
  event: readonly unknown[],
): { text: string; values: unknown[] } {
  const parameters = new SqlParameters();
  const grant = parameters.add(token.grant_id);
  const idle = parameters.add(idleSeconds, 'float8');
  const [key, ...others] = keys.map((each) => parameters.add(each));
  const moved = token.key.equals(keys[0]!) ? '' : `, key = ${key}, created_at = now()`;
  const change = staysValid
    ? `expires_at = now() + make_interval(secs => ${idle})${moved}`
    : `successor = ${parameters.add(response)}, consumed_at = clock_timestamp(),
    expires_at = LEAST(t.expires_at, now() + make_interval(secs => ${LIFETIMES.usedRefreshToken}))`;
  const rows = issued.map(({ key, model, grantId, payload, seconds }) => {
    const stored = [
      parameters.add(key, 'bytea'),
      parameters.add(model, 'text'),
      parameters.add(grantId, 'text'),
    ];
    return `(${[...stored, parameters.add(payload, 'jsonb'), parameters.add(seconds, 'float8')].join(', ')})`;
  });
  const text = `WITH family AS MATERIALIZED (
  SELECT id, access_ends_at FROM oauth_grants WHERE id = ${grant} FOR UPDATE
), used AS (
  UPDATE oauth_tokens t SET ${change}
  FROM family WHERE t.key IN (${[key, ...others].join(', ')}) AND t.grant_id = family.id AND t.consumed_at IS NULL
  RETURNING EXTRACT(epoch FROM family.access_ends_at - now())::float8 AS seconds_left
), renewed AS (
  UPDATE oauth_grants g SET expires_at = now() + make_interval(secs => ${idle} + 86400) FROM used
  WHERE g.id = ${grant} AND g.expires_at - now() NOT BETWEEN make_interval(secs => ${idle}) AND make_interval(secs => ${idle} + 86400)
), issued AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT n.key, n.model, n.grant_id, n.payload, now() + make_interval(secs => n.seconds)
  FROM used, (VALUES ${rows.join(', ')}) AS n (key, model, grant_id, payload, seconds)
), recorded AS (
  ${recordEventIf('used', parameters.addAll(event))}
) SELECT seconds_left FROM used`;
  return { text, values: parameters.values };
}
