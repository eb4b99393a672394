import { Injectable } from '@nestjs/common';
import type { AdapterPayload } from 'oidc-provider';
import { eitherOf } from '../../crypto/hmac.js';
import { OauthDatabase } from './oauth-database.js';

/** What a one-time state belongs to. */
export type OneTimeModel = 'UpstreamSignIn' | 'PasskeySignIn' | 'PasskeyRegistration';

const PUT = `INSERT INTO oauth_state (key, model, payload, expires_at) VALUES ($1, $2, $3, now() + make_interval(secs => $4))`;

const TAKE = `DELETE FROM oauth_state WHERE key IN ($1, $2) AND model = $3 AND expires_at > now() RETURNING key, payload`;

/** The name by which the key of an interaction is made once it has ended: no request goes on from it any more. */
export const ENDED = 'EndedInteraction';

const FIND_ENDED = `SELECT key, payload FROM oauth_state
WHERE key IN ($1, $2) AND model = 'Interaction' AND expires_at > now()`;

/** Encrypted state, kept until the browser's response to it arrives, and given out only once, even to parallel responses. */
@Injectable()
export class OneTimeStates {
  constructor(private readonly database: OauthDatabase) {}

  /** @param id the secret by which the state is found: base64url, at least 128 random bits */
  async put(model: OneTimeModel, id: string, state: object, seconds: number): Promise<void> {
    const { key, payload } = this.seal(model, id, state);
    await this.database.rows(PUT, [key, model, payload, seconds]);
  }

  /** @returns undefined if there is none, or if it has expired or was given out before */
  take<T>(model: OneTimeModel, id: string): Promise<T | undefined> {
    return this.find<T>(TAKE, model, id, model);
  }

  /** Encrypts a state as it is stored. */
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
    const keys = this.database.keys.keysOf(model, id);
    if (keys.length === 0) return undefined;
    const [row] = await this.database.rows<{ key: Buffer; payload: Buffer }>(statement, [
      ...eitherOf(keys),
      ...more,
    ]);
    return row && this.database.encryption.open<T>(row.payload, model, row.key);
  }

  /** @returns the parameters of the app's request of which this step was; undefined if it has not ended, or did so long ago */
  async paramsOfCompleted(uid: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { keys: tokenKeys, encryption } = this.database;
    const keys = tokenKeys.keysOf(ENDED, uid);
    const [row] = await this.database.rows<{ key: Buffer; payload: Buffer }>(FIND_ENDED, eitherOf(keys));
    if (!row) return undefined;
    const sealedUnder = tokenKeys.keysOf('Interaction', uid)[keys.findIndex((key) => key.equals(row.key))]!;
    return encryption.open<AdapterPayload>(row.payload, 'Interaction', sealedUnder)?.params;
  }
}
