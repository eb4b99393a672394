import { errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import { USE_ONCE } from '../../auth/access-tokens/use-once.js';
import { eitherOf } from '../../crypto/token-keys.js';
import type { AdapterParts } from './stored-model.js';

/** Ids of client assertions and DPoP proofs: of two parallel uses, the insert decides which is first. */
export class ReplayAdapter implements Partial<Adapter> {
  constructor(private readonly parts: AdapterParts) {}

  async find(id: string): Promise<AdapterPayload | undefined> {
    const { database, keys } = this.parts;
    const [used] = await database.rows(
      `SELECT FROM oauth_state WHERE key IN ($1, $2) AND model = 'ReplayDetection' AND expires_at > now()`,
      eitherOf(keys.keysOf('ReplayDetection', id)),
    );
    return used === undefined ? undefined : { jti: id };
  }

  async upsert(id: string, _payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { database, keys } = this.parts;
    if ((await database.rows(USE_ONCE, [keys.everyKeyOf('ReplayDetection', id), expiresIn])).length === 0)
      throw new errors.InvalidRequest('the proof or assertion was used before');
  }
}
