import { hash, parseOptions, verify } from '@node-rs/argon2';
import bcrypt from 'bcrypt';
import { Refusal } from '../database/refusal.js';

const SHORTEST = 8;
const LONGEST = 128;

/** argon2id (the library's default) with 19 MiB, 2 passes, 1 lane: OWASP's password storage cheat sheet. */
const CURRENT = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Imported hashes may cost up to this, or one sign-in could hold a processor for minutes. */
const DEAREST = { bcryptCost: 15, memoryCost: 262_144, timeCost: 16, parallelism: 16 };

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./0-9A-Za-z]{53}$/;
const ARGON2 =
  /^\$argon2(?:id|i|d)\$v=(?:16|19)\$m=\d{1,7},t=\d{1,3},p=\d{1,3}\$[+/0-9A-Za-z]{11,86}\$[+/0-9A-Za-z]{16,171}$/;

/**
 * Hashes a new password (argon2id, of its NFKC form).
 *
 * @throws Refusal where the password is not one that {@link verifyPassword} could ever match, or too short
 */
export async function hashPassword(password: string): Promise<string> {
  const normal = password.normalize('NFKC');
  const length = [...normal].length;
  if (length < SHORTEST || length > LONGEST) {
    throw new Refusal(`The password must have ${SHORTEST} to ${LONGEST} characters, it has ${length}`);
  }
  if (!isUsable(normal))
    throw new Refusal('The password must not contain U+0000 or half of a surrogate pair');
  return hash(normal, CURRENT);
}

/**
 * Compares a password with a stored hash: argon2 of any variant, or bcrypt.
 *
 * @returns `needsUpgrade`: it matches, and should be hashed anew with {@link hashPassword}'s parameters
 */
export async function verifyPassword(
  storedHash: string,
  password: string,
): Promise<{ matches: boolean; needsUpgrade: boolean }> {
  const normal = password.normalize('NFKC');
  if ([...normal].length > LONGEST || !isUsable(normal) || !isPasswordHash(storedHash))
    return { matches: false, needsUpgrade: false };
  const needsUpgrade = !isCurrent(storedHash);
  // Another system may have hashed the characters as they were typed.
  const forms = needsUpgrade ? new Set([normal, password]) : [normal];
  for (const form of forms) {
    const matches = BCRYPT.test(storedHash)
      ? await bcrypt.compare(form, storedHash.replace(/^\$2y/, '$2b')) // PHP's name for the same
      : await verify(storedHash, form);
    if (matches) return { matches, needsUpgrade };
  }
  return { matches: false, needsUpgrade: false };
}

/** Whether the text is an argon2 or bcrypt hash that {@link verifyPassword} will take. */
export function isPasswordHash(text: string): boolean {
  const bcryptCost = Number(BCRYPT.exec(text)?.[1] ?? Number.NaN);
  if (!Number.isNaN(bcryptCost)) return bcryptCost >= 4 && bcryptCost <= DEAREST.bcryptCost;
  if (!ARGON2.test(text)) return false;
  try {
    const { memoryCost, timeCost, parallelism } = parseOptions(text);
    return (
      memoryCost <= DEAREST.memoryCost &&
      timeCost <= DEAREST.timeCost &&
      parallelism >= 1 &&
      parallelism <= DEAREST.parallelism
    );
  } catch {
    return false;
  }
}

function isCurrent(storedHash: string): boolean {
  if (!storedHash.startsWith('$argon2id$v=19$')) return false;
  const { memoryCost, timeCost, parallelism } = parseOptions(storedHash);
  return (
    memoryCost === CURRENT.memoryCost && timeCost === CURRENT.timeCost && parallelism === CURRENT.parallelism
  );
}

function isUsable(password: string): boolean {
  return !password.includes('\0') && password.isWellFormed();
}
