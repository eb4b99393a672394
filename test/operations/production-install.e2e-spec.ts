import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, postgres } from '../support/database.js';
import { PROCESS } from '../support/command-line.js';
import { ServerProcess } from '../support/server.js';

/** The folders of the packages that `npm ci --omit=dev` installs. */
const INSTALLED = Object.entries(
  (JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, { dev?: boolean }> })
    .packages,
).flatMap(([path, { dev }]) => (dev || !/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) ? [] : [path]));
const SECRET_KEY = process.env.TEST_SECRET_KEY!;

postgres.describe('a production installation, like in the image', () => {
  let root: string;
  /** The built program, next to those packages. */
  beforeAll(() => {
    root = mkdtempSync(join(process.env.TEST_FOLDER!, 'installed-'));
    cpSync('dist', join(root, 'dist'), { recursive: true, filter: (path) => !path.startsWith('dist/.') });
    cpSync('bin', join(root, 'bin'), { recursive: true });
    writeFileSync(join(root, 'package.json'), '{"type": "module"}');
    for (const path of INSTALLED.filter((each) => existsSync(each))) {
      mkdirSync(join(root, path, '..'), { recursive: true });
      symlinkSync(join(process.cwd(), path), join(root, path));
    }
  });

  /** @returns the error of a server that does not start */
  const refusal = async (environment: Record<string, string>) => {
    const env = { ...PROCESS, NODE_ENV: 'test', SECRET_KEY, PORT: '0', ...environment };
    const main = promisify(execFile)(process.execPath, ['bin/server.mjs'], { cwd: root, env });
    return await main.then(
      () => 'started',
      ({ code, stderr }: { code: number; stderr: string }) => `${code}: ${stderr}`,
    );
  };

  it('has neither the embedded database nor pretty logs, and serves with PostgreSQL', async () => {
    expect(INSTALLED).not.toContain('node_modules/@electric-sql/pglite');
    expect(INSTALLED).not.toContain('node_modules/pino-pretty');
    const { environment, drop } = await createTestDatabase();
    const server = await ServerProcess.start(environment, root);
    try {
      expect((await fetch(`${server.url}/api/public/problems`)).status).toBe(200);
    } finally {
      await server.kill();
      await drop();
    }
  });

  it('reports a missing DATABASE_URL in one line', async () => {
    expect(await refusal({ DATA_DIR: join(root, 'data') })).toMatch(
      /^1: The embedded database is not part of this installation, which is for production: set DATABASE_URL\n$/,
    );
  });

  it('rejects LOG_FORMAT=pretty with a one-line error', async () => {
    expect(await refusal({ DATABASE_URL: 'postgres://127.0.0.1:1/none', LOG_FORMAT: 'pretty' })).toMatch(
      /^1: A setting is wrong: LOG_FORMAT must be json: pretty logs are not part of this installation\n$/,
    );
  });
});
