import { createCipheriv, createDecipheriv, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { deriveKey, type Secrets } from './secrets.js';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Marks a value that was encrypted again under another key. */
export interface Moved {
  moved_from?: string;
  moved_at?: string;
}

/** Counts of values by their key: current, previous, next (other instances already use it), or unknown. */
export type EncryptionCounts = Readonly<Record<'current' | 'previous' | 'next' | 'unknown', number>>;

type SealedValue = readonly [sealed: Buffer, kind: string, ...rowKeys: Buffer[]];

/** Encrypts with AES-256-GCM; nonce and tag precede the ciphertext. Kind and row keys are authenticated: values cannot be swapped. */
export class Encryption {
  readonly #keys: readonly KeyObject[];
  /** The keys' names, which reveal nothing about the keys. */
  readonly #names: readonly string[];

  constructor(secrets: Secrets, label: string) {
    this.#keys = secrets.derive(label);
    this.#names = secrets.derive(`${label}-name`).map((key) => key.export().subarray(0, 4).toString('hex'));
  }

  get keyName(): string {
    return this.#names[0]!;
  }

  seal(value: unknown, kind: string, ...rowKeys: Buffer[]): Buffer {
    return seal(this.#keys[0]!, value, contextOf(kind, rowKeys));
  }

  /** @returns undefined if neither SECRET_KEY nor SECRET_KEY_PREVIOUS decrypts the value with this kind and these row keys */
  open<T>(sealed: Buffer, kind: string, ...rowKeys: Buffer[]): T | undefined {
    return this.openNamed<T>(sealed, kind, ...rowKeys)?.value;
  }

  openNamed<T>(
    sealed: Buffer,
    kind: string,
    ...rowKeys: Buffer[]
  ): { value: T; keyName: string } | undefined {
    const context = contextOf(kind, rowKeys);
    for (const [i, key] of this.#keys.entries()) {
      const value = open<T>(key, sealed, context);
      if (value !== undefined) return { value, keyName: this.#names[i]! };
    }
    return undefined;
  }

  /** Encrypts a value again under the current key. @returns undefined if this is not needed, or impossible */
  moved<T extends Moved>(...[sealed, kind, ...rowKeys]: SealedValue): Buffer | undefined {
    const found = this.openNamed<T>(sealed, kind, ...rowKeys);
    if (!found || !this.#isToMove(found)) return undefined;
    const moved = { ...found.value, moved_from: found.keyName, moved_at: new Date().toISOString() };
    return this.seal(moved, kind, ...rowKeys);
  }

  stateOf(values: readonly SealedValue[]): { counts: EncryptionCounts; movedAt: Date | undefined } {
    const counts = { current: 0, previous: 0, next: 0, unknown: 0 };
    let movedAt: Date | undefined;
    for (const [sealed, kind, ...rowKeys] of values) {
      const found = this.openNamed<Moved>(sealed, kind, ...rowKeys);
      if (!found) counts.unknown++;
      else if (this.#isToMove(found)) counts.previous++;
      else if (found.keyName !== this.keyName) counts.next++;
      else counts.current++;
      const at = found?.value.moved_at && new Date(found.value.moved_at);
      if (at && !(movedAt && movedAt > at)) movedAt = at;
    }
    return { counts, movedAt };
  }

  #isToMove({ value, keyName }: { value: Moved; keyName: string }): boolean {
    return keyName !== this.keyName && value.moved_from !== this.keyName;
  }
}

function contextOf(kind: string, rowKeys: readonly Buffer[]): string {
  return [kind, ...rowKeys.map((key) => key.toString('hex'))].join(':');
}

/** Encrypts under a key derived from `secret` (HKDF-SHA-256). */
export function encryptFor(secret: string, value: unknown, context: string): Buffer {
  return seal(keyFor(secret, context), value, context);
}

/** Decrypts a value of {@link encryptFor}. @returns undefined if the secret or the context differs, or the value is damaged */
export function openWith<T>(secret: string, sealed: Buffer, context: string): T | undefined {
  return open<T>(keyFor(secret, context), sealed, context);
}

/** Derives a KeyObject: for a Buffer, Node first throws and catches two exceptions, which takes longer than the encryption. */
function keyFor(secret: string, context: string): KeyObject {
  return createSecretKey(deriveKey(secret, context));
}

function seal(key: KeyObject, value: unknown, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

function open<T>(key: KeyObject, sealed: Buffer, context: string): T | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    })
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    const text = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
    return JSON.parse(text.toString()) as T;
  } catch {
    return undefined; // another key or context, or a damaged value
  }
}
