import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { REGISTRY_MS } from '../test/support/packages.js';

const ATTW = '@arethetypeswrong/cli@0.18.5';
const PACKAGES = 'dist/packages';

/*
 * Checks with a third-party tool that TypeScript finds the TypeScript client's types in every resolution mode.
 */
describe('the npm package of the client', () => {
  it(
    'has correct types in every resolution mode',
    async () => {
      const archive = join(
        PACKAGES,
        readdirSync(PACKAGES).find((name) => name.endsWith('.tgz'))!,
      );
      const { stdout } = await promisify(execFile)('npx', ['--yes', ATTW, '--format', 'json', archive], {
        timeout: REGISTRY_MS,
      });
      const { analysis, problems } = JSON.parse(stdout) as {
        analysis: { types: unknown };
        problems?: object;
      };
      expect(analysis.types).toMatchObject({ kind: 'included' });
      expect(problems).toEqual({});
    },
    REGISTRY_MS,
  );
});
