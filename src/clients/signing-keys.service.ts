import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent, type AuditedTransaction } from '../audit/audit.js';
import type { WithApiTimes } from '../audit/audit-log.js';
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

/** A signing key without its private half. */
type SigningKeyDetails = WithApiTimes<Omit<SigningKey, 'public_jwk' | 'private_jwk'>>;

type Sealed = SigningJwk & Moved;

/**
 * Manages keys that sign ID tokens: ES256 keys, and RS256 keys after {@link provide}. Per algorithm, the server publishes `next` before its
 * use, signs with `current`, and publishes `previous` until the next rotation.
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

  /** Returns private keys by algorithm, current first. Creates missing ES256 keys. @throws OperatorError for a wrong SECRET_KEY */
  async load(): Promise<SigningJwk[]> {
    await this.provide('ES256');
    return (await this.#read()).map((key) => this.#decrypt(key));
  }

  /** Creates a current and a next key for this algorithm if there is no current key. */
  async provide(alg: SigningAlgorithm): Promise<void> {
    const isCurrent = (key: SigningKey) => key.alg === alg && key.status === 'current';
    if ((await this.#read()).some(isCurrent)) return;
    const [current, next] = [await makeSigningKey(alg), await makeSigningKey(alg)]; // before the lock, for which other processes wait
    await this.#change(async (manager) => {
      if ((await this.#read(manager)).some(isCurrent)) return;
      await this.#store(manager, 'current', current);
      await this.#store(manager, 'next', next);
    });
  }

  /** Re-encrypts keys of SECRET_KEY_PREVIOUS under SECRET_KEY. */
  async moveToCurrentSecret(): Promise<void> {
    const { manager } = this.dataSource;
    for (const { kid, private_jwk } of await this.#read()) {
      const moved = this.#encryption.moved<Sealed>(private_jwk!, kid);
      if (moved) await manager.update(SigningKey, { kid, private_jwk: private_jwk! }, { private_jwk: moved });
    }
  }

  /** Counts keys by the SECRET_KEY that encrypts them. @returns also the time of the last re-encryption */
  async sealState() {
    const sealed = (await this.#read()).map(({ kid, private_jwk }) => [private_jwk!, kid] as const);
    const { counts, movedAt } = this.#encryption.stateOf(sealed);
    return { ...counts, movedAt };
  }

  /** Identifies the set of published keys; cheap enough to query every second. */
  async version(): Promise<string> {
    const [row] = await this.dataSource.query<{ version: string | null }[]>(
      `SELECT string_agg(kid || status, ',' ORDER BY kid) AS version FROM signing_keys WHERE status <> 'retired'`,
    );
    return row?.version ?? '';
  }

  /** Lists the oldest key first. */
  list(): Promise<SigningKeyDetails[]> {
    return this.dataSource.query<SigningKeyDetails[]>(
      `SELECT kid, status, alg, api_time(created_at) AS created_at, api_time(activated_at) AS activated_at,
  api_time(retired_at) AS retired_at FROM signing_keys ORDER BY signing_keys.created_at, kid`,
    );
  }

  /** For each algorithm, changes next → current → previous → retired, and adds a next key. */
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
