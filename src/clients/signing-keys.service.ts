import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent, type AuditedTransaction } from '../audit/audit.js';
import { Config } from '../config/config.js';
import { ADVISORY_LOCKS } from '../database/schema/advisory-locks.js';
import { SigningKey } from '../database/schema/entities/credentials/oauth.entity.js';
import { Encryption, type Moved } from '../crypto/encryption.js';
import {
  makeSigningKey,
  publicHalfOf,
  type SigningAlgorithm,
  type SigningJwk,
} from '../crypto/signing-keys.js';
import { OperatorError } from '../values/operator-error.js';

/** What is known of a signing key; never its private half. Times in the API's form. */
interface SigningKeyDetails extends Pick<SigningKey, 'kid' | 'status' | 'alg'> {
  readonly created_at: string;
  readonly activated_at: string | null;
  readonly retired_at: string | null;
}

/** A private key as it is stored, encrypted. */
type Sealed = SigningJwk & Moved;

/**
 * The keys that sign ID tokens: those for ES256 always, those for RS256 from the moment when a client first asks for them ({@link provide}),
 * because making one takes a second. For each algorithm, `next` is published before it signs, `current` signs, and `previous` stays published
 * until the next rotation, so that what it signed remains valid. Used by the server and by the command line.
 */
@Injectable()
export class SigningKeysService {
  readonly #encryption: Encryption;

  constructor(
    private readonly dataSource: DataSource,
    @Inject(Config) config: Pick<Config, 'secrets'>,
  ) {
    this.#encryption = new Encryption(config.secrets, 'signing-keys');
  }

  /**
   * The published keys with their private halves: those for ES256 first, and within each algorithm the current one; created where there
   * are none.
   *
   * @throws Error where a private key cannot be decrypted: SECRET_KEY changed without SECRET_KEY_PREVIOUS
   */
  async load(): Promise<SigningJwk[]> {
    await this.provide('ES256');
    return (await this.#read()).map((key) => this.#decrypt(key));
  }

  /** Creates the keys for this algorithm where there are none; running servers pick them up within a second. */
  async provide(alg: SigningAlgorithm): Promise<void> {
    const isCurrent = (key: SigningKey) => key.alg === alg && key.status === 'current';
    if ((await this.#read()).some(isCurrent)) return;
    const [current, next] = [await makeSigningKey(alg), await makeSigningKey(alg)]; // before taking the lock, for which others wait
    await this.#change(async (manager) => {
      if ((await this.#read(manager)).some(isCurrent)) return;
      await this.#store(manager, 'current', current);
      await this.#store(manager, 'next', next);
    });
  }

  /** Encrypts under SECRET_KEY what is still encrypted under the previous one. */
  async moveToCurrentSecret(): Promise<void> {
    const { manager } = this.dataSource;
    for (const { kid, private_jwk } of await this.#read()) {
      const moved = this.#encryption.moved<Sealed>(private_jwk!, kid);
      if (moved) await manager.update(SigningKey, { kid, private_jwk: private_jwk! }, { private_jwk: moved });
    }
  }

  /** The SECRET_KEY under which the published keys are encrypted, and when the last of them was moved. */
  async sealState() {
    const sealed = (await this.#read()).map(({ kid, private_jwk }) => [private_jwk!, kid] as const);
    const { counts, movedAt } = this.#encryption.stateOf(sealed);
    return { ...counts, movedAt };
  }

  /** Changes whenever the published set does; cheap enough to query every second. */
  async version(): Promise<string> {
    const [row] = await this.dataSource.query<{ version: string | null }[]>(
      `SELECT string_agg(kid || status, ',' ORDER BY kid) AS version FROM signing_keys WHERE status <> 'retired'`,
    );
    return row?.version ?? '';
  }

  /** The oldest first. */
  list(): Promise<SigningKeyDetails[]> {
    return this.dataSource.query<SigningKeyDetails[]>(
      `SELECT kid, status, alg, api_time(created_at) AS created_at, api_time(activated_at) AS activated_at,
  api_time(retired_at) AS retired_at FROM signing_keys ORDER BY signing_keys.created_at, kid`,
    );
  }

  /**
   * next → current → previous → retired, and a new next, for each algorithm. No token becomes invalid: the new current key has been
   * published since the last rotation, and the old one stays published.
   */
  async rotate(): Promise<SigningKeyDetails[]> {
    const algorithms = new Set((await this.load()).map(({ alg }) => alg));
    const next: SigningJwk[] = [];
    for (const alg of algorithms) next.push(await makeSigningKey(alg));
    await this.#change(async (manager) => {
      const retired = { status: 'retired', private_jwk: null, retired_at: () => 'now()' } as const;
      await manager.update(SigningKey, { status: 'previous' }, retired);
      await manager.update(SigningKey, { status: 'current' }, { status: 'previous' });
      const current = { status: 'current', activated_at: () => 'now()' } as const;
      await manager.update(SigningKey, { status: 'next' }, current);
      for (const key of next) {
        await this.#store(manager, 'next', key);
        const details = { next: key.kid };
        await recordEvent(manager, { type: 'signing_key.rotated', actor: 'admin', details });
      }
    });
    return this.list();
  }

  async #change(work: (manager: AuditedTransaction) => Promise<void>): Promise<void> {
    await audited(this.dataSource, async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.signingKeys]);
      await work(manager);
    });
  }

  async #read(manager: EntityManager = this.dataSource.manager): Promise<SigningKey[]> {
    return manager.query<SigningKey[]>(
      `SELECT kid, status, alg, private_jwk FROM signing_keys WHERE status <> 'retired'
ORDER BY alg, array_position(ARRAY['current', 'next', 'previous'], status)`,
    );
  }

  #decrypt({ kid, private_jwk }: SigningKey): SigningJwk {
    const sealed = this.#encryption.open<Sealed>(private_jwk!, kid);
    if (!sealed)
      throw new OperatorError(
        `The signing key ${kid} cannot be decrypted: set SECRET_KEY_PREVIOUS to the other SECRET_KEY that is in use, ` +
          'the previous or the next one (docs/operators/operations.md)',
      );
    const { moved_from: _from, moved_at: _at, ...key } = sealed;
    return key;
  }

  async #store(manager: EntityManager, status: 'current' | 'next', key: SigningJwk): Promise<void> {
    const { kid, alg } = key;
    await manager.insert(SigningKey, {
      kid,
      status,
      alg,
      public_jwk: publicHalfOf(key),
      private_jwk: this.#encryption.seal(key, kid),
      ...(status === 'current' ? { activated_at: () => 'now()' } : {}),
    });
  }
}
