import { readFileSync } from 'node:fs';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import { sha256 } from '../../crypto/digests.js';
import { Unavailable } from '../../database/postgres/unavailable.js';
import { Semaphore } from '../../database/postgres/semaphore.js';
import { Meter } from '../../runtime/meter.js';
import { OperatorError } from '../../values/operator-error.js';
import { isStorable } from '../../values/string-rules.js';

/** In code points of its NFKC form. */
const [SHORTEST, LONGEST] = [10, 128];

/**
 * argon2id (the library's default) with 12 MiB, 3 passes, 1 lane: of the parameters that OWASP's password storage cheat sheet considers
 * equally strong, those that take the least CPU time here. `imported_hash_kind` in the database has them, too.
 */
const CURRENT = { memoryCost: 12_288, timeCost: 3, parallelism: 1 };

/** The maximum cost of imported hashes; otherwise, one sign-in could occupy a processor for minutes. */
const DEAREST = { bcryptCost: 15, memoryCost: 262_144, timeCost: 16, parallelism: 16 };

/** `$2b$12`, and what follows it in a whole hash. */
const BCRYPT = /^\$2[aby]\$(\d\d)(\$[./0-9A-Za-z]{53})?$/;
/** `$argon2id$v=19$m=65536,t=3,p=4`, and what follows it in a whole hash. */
const ARGON2 =
  /^\$argon2(id|i|d)\$v=(?:16|19)\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})(\$[+/0-9A-Za-z]{11,86}\$[+/0-9A-Za-z]{16,171})?$/;

/** The library's numbers for them. */
const ARGON2_VARIANTS: Readonly<Record<string, number>> = { d: 0, i: 1, id: 2 };

/** The parameters of a stored hash, which say how long it takes to verify. */
export interface HashKind {
  readonly algorithm: 'bcrypt' | 'argon2';
  /** Proportional to the time of one hash, within an algorithm: rounds, or KiB × passes. */
  readonly work: number;
  /** Makes a hash of this kind. */
  hash(password: string): Promise<string>;
}

export const CURRENT_KIND: HashKind = {
  algorithm: 'argon2',
  work: CURRENT.memoryCost * CURRENT.timeCost,
  hash: (password) => hash(password, CURRENT),
};

/** Hashes a password (argon2id, of its NFKC form). Whether it is acceptable as a new one is checked by {@link passwordFault}. */
export function hashPassword(password: string): Promise<string> {
  return hash(password.normalize('NFKC'), CURRENT);
}

/** Loaded for the first hash of this kind: only a platform whose members were imported has any. */
const bcrypt = async () => (await import('bcrypt')).default;

/**
 * Compares a password with a stored hash: argon2 of any variant, or bcrypt.
 *
 * @returns `needsUpgrade`: it matches, and should be rehashed by {@link hashPassword}
 */
export async function verifyPassword(
  storedHash: string,
  password: string,
): Promise<{ matches: boolean; needsUpgrade: boolean }> {
  const normal = password.normalize('NFKC');
  if ([...normal].length > LONGEST || !isStorable(normal) || !isPasswordHash(storedHash))
    return { matches: false, needsUpgrade: false };
  const needsUpgrade = !isCurrent(storedHash);
  // Another system may have hashed the characters as they were typed.
  const forms = needsUpgrade ? new Set([normal, password]) : [normal];
  for (const form of forms) {
    const matches = BCRYPT.test(storedHash)
      ? await (await bcrypt()).compare(form, storedHash.replace(/^\$2y/, '$2b')) // PHP's name for the same
      : await verify(storedHash, form);
    if (matches) return { matches, needsUpgrade };
  }
  return { matches: false, needsUpgrade: false };
}

/** Tells whether the text is an argon2 or bcrypt hash that {@link verifyPassword} accepts. */
export function isPasswordHash(text: string): boolean {
  const isWhole = (BCRYPT.exec(text) ?? ARGON2.exec(text))?.at(-1) !== undefined;
  if (!isWhole || kindFrom(text) === undefined) return false;
  try {
    if (!BCRYPT.test(text)) parseOptions(text); // looks at what is behind the parameters, too
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads the algorithm and the cost of a hash.
 *
 * @param parameters as at the beginning of a hash, or all of it
 * @returns undefined if there is no such hash, or it costs too much
 */
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

/** A password that is the username plus fewer characters than this is refused. */
const BESIDE_USERNAME = 4;

export type PasswordFault = 'length' | 'characters' | 'common' | 'username';

/** Hexadecimal digits kept of each SHA-256: with 2,312 entries, one other password in 10^11 is mistaken for one of them. */
const DIGITS = 12;

let common: ReadonlySet<string> | undefined;

/**
 * Checks a new password (NIST SP 800-63B-4 §3.1.1.2): 10 to 128 characters (code points of its NFKC form), not
 * one of the 100,000 most common, ignoring case, and not the member's own username. No particular kinds of characters are required.
 *
 * @returns undefined if it is acceptable
 */
export function passwordFault(password: string, username: string): PasswordFault | undefined {
  const normal = password.normalize('NFKC');
  if (!isStorable(normal)) return 'characters'; // nor does every kind of hash take all of it
  const { length } = [...normal];
  if (length < SHORTEST || length > LONGEST) return 'length';
  const [folded, name] = [normal.toLowerCase(), username.normalize('NFKC').toLowerCase()];
  if (folded.includes(name) && folded.length - name.length < BESIDE_USERNAME) return 'username';
  // The file omits those that are too short anyway (bin/common-passwords.mjs).
  common ??= new Set(readFileSync(new URL('./common-passwords.txt', import.meta.url), 'utf8').split('\n'));
  return common.has(sha256(folded, 'hex').slice(0, DIGITS)) ? 'common' : undefined;
}

const WORDS: Readonly<Record<PasswordFault, string>> = {
  length: `The password must have ${SHORTEST} to ${LONGEST} characters`,
  characters: 'The password must not contain U+0000 or half of a surrogate pair',
  common: 'The password is one of the 100,000 that most people have: choose another',
  username: 'The password must not be the username',
};

/** Like {@link passwordFault}, for an admin. @throws OperatorError if it is not allowed */
export function checkPassword(password: string, username: string): void {
  const fault = passwordFault(password, username);
  if (fault === undefined) return;
  const length = fault === 'length' ? `, it has ${[...password.normalize('NFKC')].length}` : '';
  throw new OperatorError(`${WORDS[fault]}${length}`);
}

/** argon2 runs on libuv's four threads, of which files and DNS need some; each hash takes 12 MiB meanwhile. */
const AT_ONCE = 2;
/** More could not be served before their deadline. */
const MOST_WAITING = 150;

/** Too many sign-ins are in progress: the password of this one was not checked, and the attempt is not counted. */
export class Busy extends Unavailable {
  override name = 'Busy';

  constructor() {
    super('too many sign-ins at once');
  }
}

/**
 * Limits how many passwords are hashed at a time, so that a flood of sign-ins exhausts neither processors nor memory. Who has
 * failed least goes first: guesses wait behind each other, not before everybody else.
 */
export class HashingQueue {
  #refusals = 0;
  readonly #semaphore = new Semaphore(AT_ONCE, MOST_WAITING, 0, () => {
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

  /**
   * @param deadline moment of performance.now() by which the task must have begun
   * @param failures how often those who want it have failed recently; 0 for who is known
   * @throws Busy if it has not, or if too many with fewer failures are waiting
   */
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
