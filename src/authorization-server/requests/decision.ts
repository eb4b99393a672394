import { recordEventIf, type NewAuthEvent } from '../../audit/audit.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import type { OauthDatabase } from './oauth-database.js';
import {
  refusingOrphans,
  SIGNED_IN,
  type Consent,
  type NewGrant,
  type SignInParameters,
} from './statement-parts.js';

/** The answer is stored once: of two forms sent at the same moment, one finds the interaction unanswered. */
const DECIDED = `WITH ${SIGNED_IN}, decided AS (
  UPDATE oauth_state SET key = $3, payload = $4, user_id = $1, consumed_at = now()
  WHERE key IN ($3, $5) AND model = 'Interaction' AND consumed_at IS NULL AND expires_at > now()
    AND ($1::bigint IS NULL OR EXISTS (SELECT FROM signed_in)) RETURNING 1
)`;
const RECORDED = `recorded AS (${recordEventIf('decided', 6)})`;

/** For the scopes that were not asked about now, an earlier answer stays as it was. */
const REMEMBERED = `remembered AS (
  INSERT INTO oauth_consents AS c (user_id, client_id, granted, rejected, redirect_origins)
  SELECT $1, $14, $15::text[], $16::text[], $17::text[] FROM decided
  ON CONFLICT (user_id, client_id) DO UPDATE SET updated_at = now(),
    granted = ARRAY(SELECT unnest(c.granted) EXCEPT SELECT unnest($16) UNION SELECT unnest($15)),
    rejected = ARRAY(SELECT unnest(c.rejected) EXCEPT SELECT unnest($15) UNION SELECT unnest($16)),
    redirect_origins = CASE WHEN c.redirect_origins IS NULL THEN NULL
      ELSE ARRAY(SELECT unnest(c.redirect_origins) UNION SELECT unnest($17)) END
), granted AS (
  INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
  SELECT $18, $1, $14, $19::jsonb, now() + make_interval(secs => ${LIFETIMES.unusedGrant}) FROM decided
)`;

const DECIDE = `${DECIDED} SELECT FROM decided`;
const DECIDE_AND_RECORD = `${DECIDED}, ${RECORDED} SELECT FROM decided`;
const CONSENT = `${DECIDED}, ${RECORDED}, ${REMEMBERED} SELECT FROM decided`;

/** What a member answered where an interaction asked: stored with it in one statement, so that nothing comes of a second answer. */
export class Decision {
  #grant: NewGrant | undefined;

  /** @param event records it in the audit trail */
  constructor(
    private readonly event?: NewAuthEvent,
    private readonly consent?: Consent,
  ) {}

  grant(grant: NewGrant): void {
    this.#grant = grant;
  }

  /** @param interaction with its answer. @returns false, with nothing written, if there is an answer already, or the sign-in is no longer valid */
  async store(
    database: OauthDatabase,
    signedIn: SignInParameters,
    interaction: readonly [key: Buffer, payload: Buffer, earlierKey: Buffer | null],
  ): Promise<boolean> {
    const values = [...signedIn, ...interaction];
    if (this.event) values.push(...(database.eventValues(this.event) as never[]));
    if (!this.consent)
      return (await database.rows(this.event ? DECIDE_AND_RECORD : DECIDE, values)).length > 0;
    const { granted, rejected, redirect_origins: origins } = this.consent;
    const { id, clientId, payload } = this.#grant!;
    const written = database.rows(CONSENT, [...values, clientId, granted, rejected, origins, id, payload]);
    return (await refusingOrphans(written)).length > 0;
  }
}
