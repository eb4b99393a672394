import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { eventValues, recordAlone, recordEventIf } from '../../audit/audit.js';
import type { Config } from '../../config/config.js';
import { Database } from '../../database/database.js';
import { SIGN_INS_VALID_SINCE } from '../../database/sql.js';
import { signInEvent, type RefusalCause, type SignedIn } from './sign-in.js';

interface StoredPasskey {
  readonly id: number;
  readonly user_id: number;
  readonly public_key: Buffer;
  readonly user_handle: Buffer;
  readonly backup_eligible: boolean;
}

const FIND = `SELECT id, user_id, public_key, user_handle, backup_eligible FROM passkeys WHERE credential_id = $1`;

/** A counter that does not increase indicates a cloned passkey (WebAuthn level 3, §6.1.1). It also lets only one of several uses of a proof succeed. */
const USE = `WITH used AS (
  UPDATE passkeys p SET sign_count = $2, backed_up = $3, last_used_at = now() FROM users u
  WHERE p.id = $1 AND u.id = p.user_id AND u.disabled_at IS NULL AND ($2::bigint > p.sign_count OR ($2::bigint = 0 AND p.sign_count = 0))
  RETURNING ${SIGN_INS_VALID_SINCE} AS valid_since, floor(EXTRACT(epoch FROM now()))::bigint AS now
), told AS (${recordEventIf('used', 4)})
SELECT valid_since, now FROM used`;

const IS_DISABLED = 'SELECT FROM users WHERE id = $1 AND disabled_at IS NOT NULL';

/** Finds and signs in the member that a passkey belongs to. */
@Injectable()
export class Passkeys {
  constructor(private readonly database: Database) {}

  async find(credentialId: Buffer): Promise<StoredPasskey | undefined> {
    const [passkey] = await this.database.prepared<StoredPasskey>(FIND, [credentialId]);
    return passkey;
  }

  /**
   * Signs in the member whose passkey made a verified proof, and records it.
   *
   * @returns undefined if the member is disabled, or the counter went back
   */
  async use(
    passkey: StoredPasskey,
    { signCount, backedUp }: { signCount: number; backedUp: boolean },
    ip: string | undefined,
  ): Promise<SignedIn | undefined> {
    const { id, user_id: userId, backup_eligible: backupEligible } = passkey;
    const [used] = await this.database.prepared<{ valid_since: number | null; now: number }>(USE, [
      id,
      signCount,
      backedUp,
      ...eventValues(signInEvent('passkey', userId, ip)),
    ]);
    if (!used) {
      const disabled = (await this.database.prepared(IS_DISABLED, [userId])).length > 0;
      await this.refuse(passkey, disabled ? 'disabled' : 'counter_went_back', ip);
      return undefined;
    }
    return {
      userId,
      at: used.now,
      validSince: used.valid_since,
      amr: ['pop', 'user'],
      // OpenID Connect EAP ACR Values 1.0 §2: phishing-resistant, and phishing-resistant with the key protected by hardware.
      acr: backupEligible ? 'phr' : 'phrh',
    };
  }

  async refuse(passkey: StoredPasskey, reason: RefusalCause, ip: string | undefined): Promise<void> {
    const event = signInEvent('passkey', passkey.user_id, ip, reason);
    await recordAlone((text, values) => this.database.prepared(text, values), event);
  }
}

/**
 * Gives the RP ID of passkeys (WebAuthn level 3, §4): the host of PUBLIC_URL.
 *
 * @returns undefined if there are no passkeys: the host is an IP address, for which browsers create none, or members sign in only
 * with the platform's own login, which then decides how
 */
export function passkeyDomain({ publicUrl, localSignIn }: Config): string | undefined {
  const { hostname } = new URL(publicUrl);
  const isName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  return localSignIn && isName ? hostname : undefined;
}
