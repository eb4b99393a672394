import type { AdapterPayload } from 'oidc-provider';
import { recordEventIf } from '../../audit/audit.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import type { Statements } from '../storage/statements.js';

/** For this long a used refresh token gets the answer again that it got when it was used. */
export const REPEAT_SECONDS = 10;

/** A code or token that was presented and found: where it is stored, the grant that it belongs to, and its member. */
export interface PresentedToken {
  readonly key: Buffer;
  readonly grant_id: string;
  /** null where it has expired */
  readonly grant: AdapterPayload | null;
  readonly user_id: number;
  readonly user_active: boolean;
}

/** A code or token that was issued. */
export interface NewToken {
  readonly key: Buffer;
  readonly model: string;
  readonly grantId: string;
  /** JSON */
  readonly payload: string;
  /** Until it expires. */
  readonly seconds: number;
}

/** The answer that a refresh token got when it was used, as it is kept with it for {@link REPEAT_SECONDS}. */
export interface KeptAnswer {
  readonly sealed: Buffer;
  readonly secondsAgo: number;
}

/**
 * How far a request has come with its token:
 *
 * - `empty`: nothing that it presented was found;
 * - `presented`: a token was found, fresh or used a moment ago; with the answer that it got then, in the latter case;
 * - `used`: the library has checked everything and is using it up: what it issues is stored with that, or not at all;
 * - `repeated`: the same, of a token that was used a moment ago: what the library issues is dropped, and the answer of then repeated.
 */
type State =
  | { readonly is: 'empty' }
  | { readonly is: 'presented'; readonly token: PresentedToken; readonly kept?: KeptAnswer }
  | { readonly is: 'used'; readonly token: PresentedToken; readonly issued: NewToken[] }
  | { readonly is: 'repeated'; readonly token: PresentedToken; readonly kept: KeptAnswer };

/** Of {@link finishing}, before the tokens: grant, answer, presented token, event. */
const [EVENT_AT, TOKENS_AT] = [4, 12];

const TOKEN_TYPES = ['bytea', 'text', 'text', 'jsonb', 'float8'];

/**
 * All that a successful token request writes, or nothing: one statement is one transaction. The grant ($1) is locked first,
 * always, since whoever revokes it holds its lock before it touches the tokens. The presented token ($3) is used up by a
 * conditional UPDATE, of which one of many in parallel succeeds, and keeps the answer for who asks again ($2); what was
 * issued is stored; the audit trail has a line.
 *
 * @param tokens how many were issued: each has parameters of its own, since arrays of them would have to be written and taken apart again
 */
const finishing = (tokens: number) => `WITH family AS MATERIALIZED (
  SELECT id FROM oauth_grants WHERE id = $1 FOR UPDATE
), used AS (
  UPDATE oauth_tokens t SET consumed_at = clock_timestamp(), successor = $2 FROM family
  WHERE t.key = $3 AND t.grant_id = family.id AND t.consumed_at IS NULL RETURNING 1
), issued AS (
  INSERT INTO oauth_tokens (key, model, grant_id, payload, expires_at)
  SELECT n.key, n.model, n.grant_id, n.payload, now() + make_interval(secs => n.seconds)
  FROM used, (VALUES ${Array.from({ length: tokens }, (_, i) => {
    const values = TOKEN_TYPES.map((type, at) => `$${TOKENS_AT + TOKEN_TYPES.length * i + at}::${type}`);
    return `(${values.join(', ')})`;
  }).join(', ')}) AS n (key, model, grant_id, payload, seconds)
), recorded AS (
  ${recordEventIf('used', EVENT_AT)}
) SELECT FROM used`;

/** An access token and a refresh token, which is what nearly every request gets. */
const FINISH_TWO = finishing(2);

/**
 * A request to the token or revocation endpoint: what it presents, uses up, issues and revokes. The library goes through it step by
 * step, by way of the adapters; nothing but a revocation is written before {@link TokenRequest.finish}.
 */
export class TokenRequest {
  #state: State = { is: 'empty' };
  #revokedGrant: { readonly id: string; readonly userId: number | null } | undefined;

  /** The token that was found last. */
  get presented(): PresentedToken | undefined {
    return this.#state.is === 'empty' ? undefined : this.#state.token;
  }

  /** The answer that the token got when it was used a moment ago, where the library came as far as using it again. */
  get repeated(): KeptAnswer | undefined {
    return this.#state.is === 'repeated' ? this.#state.kept : undefined;
  }

  /** Whether the token that was found was used a moment ago, and can be asked for again. */
  get isRepeatable(): boolean {
    return this.#state.is === 'presented' && this.#state.kept !== undefined;
  }

  /** The grant that was deleted. */
  get revokedGrant(): { readonly id: string; readonly userId: number | null } | undefined {
    return this.#revokedGrant;
  }

  /** A token was found. @param kept the answer that it got, where it was used within the window */
  present(token: PresentedToken, kept?: KeptAnswer): void {
    this.#state = { is: 'presented', token, ...(kept ? { kept } : {}) };
  }

  /** Everything was checked, and the token is used up; {@link finish} decides which of many in parallel does so. */
  use(): void {
    if (this.#state.is !== 'presented') throw new Error(`a token that is ${this.#state.is} cannot be used`);
    const { token, kept } = this.#state;
    this.#state = kept ? { is: 'repeated', token, kept } : { is: 'used', token, issued: [] };
  }

  /** A token comes of the one that was used. */
  issue(token: NewToken): void {
    if (this.#state.is === 'used') this.#state.issued.push(token);
    else if (this.#state.is !== 'repeated')
      throw new Error(`nothing can come of a token that is ${this.#state.is}`);
  }

  /** A grant was deleted, and all that belonged to it. */
  revoked(grant: { readonly id: string; readonly userId: number | null }): void {
    this.#revokedGrant = grant;
  }

  /**
   * Writes what came of the request.
   *
   * @param answer sealed, for who asks again; null where the token cannot be asked for again
   * @returns false, and nothing is written, where another request has used the token or ended the grant since it was read
   */
  async finish(database: Statements, answer: Buffer | null, event: NewAuthEvent): Promise<boolean> {
    if (this.#state.is !== 'used')
      throw new Error(`a request whose token is ${this.#state.is} cannot be finished`);
    const { token, issued } = this.#state;
    const written = await database.rows(issued.length === 2 ? FINISH_TWO : finishing(issued.length), [
      token.grant_id,
      answer,
      token.key,
      ...database.eventValues(event),
      ...issued.flatMap(({ key, model, grantId, payload, seconds }) => [
        key,
        model,
        grantId,
        payload,
        seconds,
      ]),
    ]);
    return written.length === 1;
  }
}
