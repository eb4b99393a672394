import { describe, expect, it } from '@jest/globals';
import { hash } from '@node-rs/argon2';
import bcrypt from 'bcrypt';
import { hashPassword, isPasswordHash, verifyPassword } from './passwords.js';

const MATCHES = { matches: true, needsUpgrade: false };
const IMPORTED = { matches: true, needsUpgrade: true };
const DIFFERS = { matches: false, needsUpgrade: false };

describe('passwords', () => {
  it('are hashed with argon2id, each with its own salt', async () => {
    const [one, other] = [await hashPassword('correct horse'), await hashPassword('correct horse')];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=12288,t=3,p=1\$/);
    expect(one).not.toBe(other);
    expect(await verifyPassword(one, 'correct horse')).toMatchObject(MATCHES);
    expect(await verifyPassword(one, 'correct horsf')).toMatchObject(DIFFERS);
  });

  it('match in another Unicode form', async () => {
    const stored = await hashPassword('caf\u00e9 \ufb01ne');
    expect(await verifyPassword(stored, 'cafe\u0301 fine')).toMatchObject(MATCHES);
  });

  it('do not match if they exceed 128 characters', async () => {
    const long = 'x'.repeat(129);
    expect(await verifyPassword(await hash(long), long)).toMatchObject(DIFFERS);
  });

  it.each([
    ['bcrypt', () => bcrypt.hash('old password', 4)],
    ["PHP's bcrypt", async () => (await bcrypt.hash('old password', 4)).replace('$2b', '$2y')],
    ['argon2i', () => hash('old password', { algorithm: 1, memoryCost: 4096, timeCost: 3 })],
    ['argon2d', () => hash('old password', { algorithm: 0, memoryCost: 4096 })],
    ['argon2id with other parameters', () => hash('old password', { memoryCost: 4096 })],
    [
      'argon2id with this server’s earlier parameters',
      () => hash('old password', { memoryCost: 19_456, timeCost: 2, parallelism: 1 }),
    ],
  ])('match if they are stored as %s, and are marked for a new hash', async (_, make) => {
    const stored = await make();
    expect(isPasswordHash(stored)).toBe(true);
    expect(await verifyPassword(stored, 'old password')).toMatchObject(IMPORTED);
    expect(await verifyPassword(stored, 'bad password')).toMatchObject(DIFFERS);
  });

  it('are verified off the event loop, even with an expensive hash', async () => {
    const dear = await bcrypt.hash('old password', 11);
    let turns = 0;
    const turning = setInterval(() => turns++, 1);
    await verifyPassword(dear, 'old password');
    clearInterval(turning);
    expect(turns).toBeGreaterThan(5);
  });

  it('match as typed if they were imported from a system without NFKC', async () => {
    const stored = await bcrypt.hash('\ufb01ne', 4);
    expect(await verifyPassword(stored, '\ufb01ne')).toMatchObject(IMPORTED);
  });

  it.each([
    ['plain text', 'password'],
    ['an empty text', ''],
    ['MD5', '5f4dcc3b5aa765d61d8327deb882cf99'],
    ['bcrypt that would take hours', `$2b$31$${'a'.repeat(53)}`],
    ['argon2 with a terabyte', `$argon2id$v=19$m=9999999,t=2,p=1$${'a'.repeat(22)}$${'a'.repeat(43)}`],
    ['argon2 with zero lanes', `$argon2id$v=19$m=4096,t=2,p=0$${'a'.repeat(22)}$${'a'.repeat(43)}`],
    ['truncated argon2', '$argon2id$v=19$m=4096,t=2,p=1$'],
  ])('never match %s, which is not an accepted hash', async (_, stored) => {
    expect(isPasswordHash(stored)).toBe(false);
    expect(await verifyPassword(stored, stored)).toMatchObject(DIFFERS);
  });
});
