import { errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import { recordEventIf } from '../../audit/audit.js';
import { LIFETIMES } from '../provider/lifetimes.js';
import { newGrant } from '../requests/consent.js';
import { consented, refusingOrphans, SIGNED_IN } from '../requests/statement-parts.js';
import { alive, type AdapterParts } from './stored-model.js';

const FIND_GRANT = {
  name: 'find-grant',
  text: 'SELECT payload FROM oauth_grants WHERE id = $1 AND expires_at > now()',
};

const STORE_GRANT = `WITH ${SIGNED_IN}, ${consented('$7')}
INSERT INTO oauth_grants (id, user_id, client_id, payload, expires_at)
SELECT $3, $1, $4, $5::jsonb, now() + make_interval(secs => $6)
WHERE EXISTS (SELECT FROM signed_in) AND EXISTS (SELECT FROM consented)
ON CONFLICT (id) DO UPDATE SET payload = EXCLUDED.payload RETURNING 1`;

const END = 'DELETE FROM oauth_grants WHERE id = $1';
const END_AND_RECORD = `WITH ended AS (${END} RETURNING 1), recorded AS (${recordEventIf('ended', 2)}) SELECT FROM ended`;

/** Grants: one per sign-in of an app, with what the member allowed it. Their ids are not secret. */
export class GrantAdapter implements Partial<Adapter> {
  constructor(private readonly parts: AdapterParts) {}

  async find(id: string): Promise<AdapterPayload | undefined> {
    const { database } = this.parts;
    const token = database.current?.token?.presented;
    if (token?.grant_id === id) return token.grant ? alive({ ...token.grant, jti: id }) : undefined;
    const [row] = await database.read<{ payload: AdapterPayload }>(FIND_GRANT, [id]);
    return row && alive({ ...row.payload, jti: id });
  }

  /** @throws SessionNotFound if the member's sign-in is no longer valid, or the consent was narrowed */
  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database } = this.parts;
    const grant = newGrant(id, payload);
    const request = database.current!;
    const holder = request.authorization ?? request.decision;
    if (holder) {
      holder.grant(grant);
      return;
    }
    const written = await refusingOrphans(
      database.rows(STORE_GRANT, [
        ...request.signedIn(Number(payload.accountId)),
        id,
        grant.clientId,
        grant.payload,
        Math.min(expiresIn, LIFETIMES.unusedGrant),
        grant.scopes,
      ]),
    );
    if (written.length === 0) throw new errors.SessionNotFound('the sign-in was ended');
  }

  /** Ends the whole token family in one statement: the grant's codes and tokens are deleted with it. */
  async destroy(id: string): Promise<void> {
    const { database } = this.parts;
    const token = database.current?.token;
    const event = token?.revoked?.(id);
    if (event) await database.rows(END_AND_RECORD, [id, ...database.eventValues(event)]);
    else await database.rows(END, [id]);
    if (token) token.revokedGrant = id;
  }
}
