import { readFileSync } from 'node:fs';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import { sha256 } from '../../crypto/digests.js';
import { Unavailable } from '../../database/postgres/unavailable.js';
import { Semaphore } from '../../database/postgres/semaphore.js';
import { Meter } from '../../runtime/meter.js';
import { OperatorError } from '../../values/operator-error.js';
import { isStorable } from '../../values/string-rules.js';

/** Minimum and maximum length of a password, in code points of its NFKC form. */
const [SHORTEST, LONGEST] = [10, 128];

/** argon2id, 12 MiB, 3 passes, 1 lane: one of OWASP's equally strong choices. `imported_hash_kind` repeats them. */
const CURRENT = { memoryCost: 12_288, timeCost: 3, parallelism: 1 };

/** Maximum cost of imported hashes, so that one sign-in cannot occupy a processor for minutes. */
const DEAREST = { bcryptCost: 15, memoryCost: 262_144, timeCost: 16, parallelism: 16 };

/** A bcrypt hash or its beginning, such as `$2b$12`. */
const BCRYPT = /^\$2[aby]\$(\d\d)(\$[./0-9A-Za-z]{53})?$/;
/** An argon2 hash or its beginning, such as `$argon2id$v=19$m=65536,t=3,p=4`. */
const ARGON2 =
  /^\$argon2(id|i|d)\$v=(?:16|19)\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})(\$[+/0-9A-Za-z]{11,86}\$[+/0-9A-Za-z]{16,171})?$/;

const ARGON2_VARIANTS: Readonly<Record<string, number>> = { d: 0, i: 1, id: 2 };

export interface HashKind {
  readonly algorithm: 'bcrypt' | 'argon2';
  /** Cost, comparable within an algorithm: rounds of bcrypt, or KiB × passes of argon2. */
  readonly work: number;
  hash(password: string): Promise<string>;
}

export const CURRENT_KIND: HashKind = {
  algorithm: 'argon2',
  work: CURRENT.memoryCost * CURRENT.timeCost,
  hash: (password) => hash(password, CURRENT),
};

/** Hashes the password's NFKC form with argon2id. {@link passwordFault} checks whether a new password is acceptable. */
export function hashPassword(password: string): Promise<string> {
  return hash(password.normalize('NFKC'), CURRENT);
}

/** Loaded on demand: only imported hashes need it. */
const bcrypt = async () => (await import('bcrypt')).default;

/** Compares a password with an argon2 or bcrypt hash. @returns `needsUpgrade`: whether a matching hash needs rehashing */
export async function verifyPassword(
  storedHash: string,
  password: string,
): Promise<{ matches: boolean; needsUpgrade: boolean }> {
  const normal = password.normalize('NFKC');
  if ([...normal].length > LONGEST || !isStorable(normal) || !isPasswordHash(storedHash))
    return { matches: false, needsUpgrade: false };
  const needsUpgrade = !isCurrent(storedHash);
  // Other systems may have hashed the password without NFKC.
  const forms = needsUpgrade ? new Set([normal, password]) : [normal];
  for (const form of forms) {
    const matches = BCRYPT.test(storedHash)
      ? await (await bcrypt()).compare(form, storedHash.replace(/^\$2y/, '$2b')) // PHP writes `$2y` for `$2b`
      : await verify(storedHash, form);
    if (matches) return { matches, needsUpgrade };
  }
  return { matches: false, needsUpgrade: false };
}

/** Tells whether {@link verifyPassword} accepts the text as a hash. */
export function isPasswordHash(text: string): boolean {
  const isWhole = (BCRYPT.exec(text) ?? ARGON2.exec(text))?.at(-1) !== undefined;
  if (!isWhole || kindFrom(text) === undefined) return false;
  try {
    if (!BCRYPT.test(text)) parseOptions(text); // also checks salt and hash
    return true;
  } catch {
    return false;
  }
}

/** Reads the algorithm and the cost from a hash, or from its beginning. @returns undefined if it is malformed or costs too much */
export function kindFrom(parameters: string): HashKind | undefined {
  const bcryptCost = Number(BCRYPT.exec(parameters)?.[1] ?? Number.NaN);
  if (bcryptCost >= 4 && bcryptCost <= DEAREST.bcryptCost) {
    return {
      algorithm: 'bcrypt',
      work: 2 ** bcryptCost,
      hash: async (password) => (await bcrypt()).hash(password, bcryptCost),
    };
  }
  const [, variant, ...costs] = ARGON2.exec(parameters) ?? [];
  if (variant === undefined) return undefined;
  const [memoryCost, timeCost, parallelism] = costs.map(Number) as [number, number, number];
  const isPossible = parallelism >= 1 && timeCost >= 1 && memoryCost >= 8 * parallelism; // RFC 9106 §3.1
  const isCheapEnough =
    memoryCost <= DEAREST.memoryCost && timeCost <= DEAREST.timeCost && parallelism <= DEAREST.parallelism;
  if (!isPossible || !isCheapEnough) return undefined;
  const algorithm = ARGON2_VARIANTS[variant]!;
  return {
    algorithm: 'argon2',
    work: memoryCost * timeCost,
    hash: (password) => hash(password, { algorithm, memoryCost, timeCost, parallelism }),
  };
}

function isCurrent(storedHash: string): boolean {
  const { memoryCost, timeCost, parallelism } = CURRENT;
  return storedHash.startsWith(`$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$`);
}

/** Minimum number of other characters in a password that contains the username. */
const BESIDE_USERNAME = 4;

export type PasswordFault = 'length' | 'characters' | 'common' | 'username';

/** Hex digits of each SHA-256 in the list. With 2,312 entries, one of 10^11 other passwords is rejected by mistake. */
const DIGITS = 12;

let common: ReadonlySet<string> | undefined;

/** Checks a new password (NIST SP 800-63B-4 §3.1.1.2). @returns undefined if acceptable */
export function passwordFault(password: string, username: string): PasswordFault | undefined {
  const normal = password.normalize('NFKC');
  if (!isStorable(normal)) return 'characters'; // some hash algorithms reject these characters, too
  const { length } = [...normal];
  if (length < SHORTEST || length > LONGEST) return 'length';
  const [folded, name] = [normal.toLowerCase(), username.normalize('NFKC').toLowerCase()];
  if (folded.includes(name) && folded.length - name.length < BESIDE_USERNAME) return 'username';
  common ??= new Set(readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8').split('\n'));
  return common.has(sha256(folded, 'hex').slice(0, DIGITS)) ? 'common' : undefined;
}

const WORDS: Readonly<Record<PasswordFault, string>> = {
  length: `The password must have ${SHORTEST} to ${LONGEST} characters`,
  characters: 'The password must not contain U+0000 or half of a surrogate pair',
  common: 'The password is one of the 100,000 most common: choose another',
  username: `The password is the username with fewer than ${BESIDE_USERNAME} other characters: choose another`,
};

/** Checks a new password that an admin sets. @throws OperatorError if it is not allowed */
export function checkPassword(password: string, username: string): void {
  const fault = passwordFault(password, username);
  if (fault === undefined) return;
  const length = fault === 'length' ? `, but has ${[...password.normalize('NFKC')].length}` : '';
  throw new OperatorError(`${WORDS[fault]}${length}`);
}

/** Maximum concurrent hashes, since files and DNS also need some of libuv's four threads. */
const AT_ONCE = 2;
/** Maximum length of the queue: further passwords would probably miss their deadlines. */
const MAX_WAITING = 150;

/** Thrown if too many sign-ins or password changes are in progress. */
export class Busy extends Unavailable {
  override name = 'Busy';

  constructor() {
    super('too many sign-ins at once');
  }
}

/** Limits concurrent hashing, to protect processors and memory from floods. Callers with the fewest failures go first. */
export class HashingQueue {
  #refusals = 0;
  readonly #semaphore = new Semaphore(AT_ONCE, MAX_WAITING, 0, () => {
    this.#refusals++;
    return new Busy();
  });

  constructor(private readonly meter = new Meter()) {
    meter.read('password_hashing_queue', () => [
      [{ state: 'running' }, this.#semaphore.counts.running],
      [{ state: 'waiting' }, this.#semaphore.counts.waiting],
    ]);
    meter.read('overload_refusals_total', () => [[{ reason: 'password_hashing' }, this.#refusals]]);
  }

  /** @param deadline latest start, by performance.now() @param failures the caller's recent failures @throws Busy if it cannot start */
  run<T>(task: () => Promise<T>, deadline: number, failures = 0): Promise<T> {
    const measured = async () => {
      const startedAt = performance.now();
      try {
        return await task();
      } finally {
        this.meter.observe('password_hashing_duration_seconds', {}, (performance.now() - startedAt) / 1000);
      }
    };
    return this.#semaphore.take(measured, deadline - performance.now(), failures);
  }
}
