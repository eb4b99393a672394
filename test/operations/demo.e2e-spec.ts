import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hashPassword } from '../../src/accounts/passwords/passwords.js';
import { ApiKeysService } from '../../src/auth/api-keys/api-keys.service.js';
import { parseKey } from '../../src/auth/api-keys/api-key-format.js';
import { Secrets } from '../../src/crypto/secrets.js';
import type { Config } from '../../src/config/config.js';
import {
  banner,
  demoMembers,
  FIRST_ID,
  LAST_MEMBER_ID,
  rejectDemoMembers,
  seedDemo,
  testKey,
} from '../../src/operations/demo/demo.js';
import { TestApi } from '../support/api.js';

let api: TestApi;
let config: Config;
beforeAll(async () => {
  api = await TestApi.start();
  await seedDemo(api.dataSource);
  config = { ...api.config, dataDir: join(mkdtempSync(join(process.env.TEST_FOLDER!, 'demo-')), 'data') };
});
afterAll(() => api.close());

describe('the demo’s test key', () => {
  const file = () => join(config.dataDir, 'test-key');
  const key = async (changed: Partial<Config> = {}) =>
    (await testKey(api.dataSource, { ...config, ...changed }))!;
  const works = async (text: string) => (await api.get('/profile', text)).status === 200;

  it('is created once, and kept in a file that only its owner can read', async () => {
    const first = await key();
    expect(await works(first)).toBe(true);
    expect([await key(), await key()]).toEqual([first, first]);
    expect(readFileSync(file(), 'utf8')).toBe(`${first}\n`);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(config.dataDir).mode & 0o777).toBe(0o700);
  });

  it.each<[string, (before: string) => Promise<unknown> | void]>([
    [
      'was revoked',
      (before) => new ApiKeysService(api.dataSource, config).revoke(parseKey(before)!.id, 'test', 'admin'),
    ],
    [
      'has expired',
      () =>
        api.query(
          `UPDATE api_keys SET created_at = now() - interval '2 days', expires_at = now() - interval '1 day'`,
        ),
    ],
    ['is not in the database', () => api.query('TRUNCATE api_keys CASCADE')],
    ['is missing from the folder', () => rmSync(file())],
    ['was altered', (before) => writeFileSync(file(), before.slice(0, -1))],
    ['was replaced by other content', () => writeFileSync(file(), 'hello')],
  ])('is created again if it %s', async (_, happen) => {
    const before = await key();
    await happen(before);
    const after = await key();
    expect(after).not.toBe(before);
    expect(await works(after)).toBe(true);
    expect(await key()).toBe(after);
  });

  it('is kept if SECRET_KEY_PREVIOUS is the old SECRET_KEY, and replaced without it', async () => {
    const before = await key();
    const [one, other] = [Buffer.alloc(32, 'one'), Buffer.alloc(32, 'other')];
    const known = Buffer.from(process.env.TEST_SECRET_KEY!, 'base64');
    expect(await key({ secrets: new Secrets(one, known) })).toBe(before);
    expect(await key({ secrets: new Secrets(other) })).not.toBe(before);
  });

  it('is in a private file, even if other users could read the file before', async () => {
    await key();
    writeFileSync(file(), 'hello');
    chmodSync(file(), 0o644);
    await key();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  it('is not created for a disabled member', async () => {
    await api.query('UPDATE users SET disabled_at = now() WHERE id = $1', [FIRST_ID]);
    expect(await testKey(api.dataSource, config)).toBeUndefined();
    await api.query('UPDATE users SET disabled_at = NULL WHERE id = $1', [FIRST_ID]);
  });

  it('causes an error that names DATA_DIR if the server cannot store the key', async () => {
    const dataDir = join(mkdtempSync(join(process.env.TEST_FOLDER!, 'demo-')), 'a-file');
    writeFileSync(dataDir, '');
    await expect(testKey(api.dataSource, { ...config, dataDir })).rejects.toThrow(
      /^DATA_DIR .* cannot be used \((EEXIST|ENOTDIR)\)/,
    );
  });
});

describe('demo members', () => {
  const refuse = () => rejectDemoMembers(api.dataSource);

  it('fail the startup check, whose error message contains the SQL that disables them', async () => {
    expect(await demoMembers(api.dataSource)).toHaveLength(LAST_MEMBER_ID - FIRST_ID + 1);
    const { message } = await refuse().then(
      () => new Error('started'),
      (error: Error) => error,
    );
    expect(message).toMatch(/^The database contains demo members, whose password is public/);
    await api.query(/UPDATE users .*/.exec(message)![0]);
    await refuse();
    expect(await demoMembers(api.dataSource)).toEqual([]);
    await api.query('UPDATE users SET disabled_at = NULL');
    await expect(refuse()).rejects.toThrow('The database contains demo members');

    // The server starts only when every demo member has another password, or none.
    await api.query('UPDATE users SET password_hash = $1 WHERE id % 2 = 0', [
      await hashPassword('another password'),
    ]);
    await expect(refuse()).rejects.toThrow('The database contains demo members');
    await api.query('UPDATE users SET password_hash = NULL WHERE id % 2 = 1');
    await refuse();
  });

  it('are in the startup banner with their password; a banner without demo members has no password', () => {
    expect(banner(config, { key: undefined, members: ['ada', 'alan3'] })).toMatch(/Members +ada \(password/);
    expect(banner(config, { key: undefined, members: [] })).not.toMatch(/password|API_KEY|curl/);
  });
});
