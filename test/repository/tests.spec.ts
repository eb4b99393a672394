import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';

const files = ['test', 'src']
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  )
  .filter((path) => path.endsWith('spec.ts') && !path.endsWith('repository/tests.spec.ts'));
const holding = (pattern: RegExp) => files.filter((path) => pattern.test(readFileSync(path, 'utf8')));

describe('the tests', () => {
  it('name each endpoint’s method and path in a title', () => {
    const titles = files.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/describe\((['"`])(.+?)\1/g)].map(([, , title]) => title!),
    );
    const table = readFileSync('docs/api-contract.md', 'utf8').matchAll(/^\| (GET|PUT) (\/[^|]+?) +\|/gm);
    const endpoints = [...table]
      .flatMap(([, method, paths]) => paths!.split(', ').map((path) => [method!, path.replace(/\?.*/, '')]))
      .concat([
        ['POST', '/api/platform/records'],
        ['GET', '/api/platform/changes'],
        ['GET', '/livez'],
        ['GET', '/readyz'],
      ]);
    expect(endpoints.length).toBeGreaterThan(10);
    /** `/api/public/events, /{id}`: the second path is relative to the first. */
    const named = (method: string, path: string) =>
      titles.some((title) => {
        const [first = '', ...others] = title.split(/[\s:?,]+/).filter((word) => word.startsWith('/'));
        const paths = [first, ...others, ...others.map((other) => first.replace(/\/[^/]*$/, other))];
        return title.includes(method) && paths.includes(path);
      });
    expect(endpoints.filter(([method, path]) => !named(method!, path!))).toEqual([]);
  });

  it('call skip, only, todo, xit and xdescribe only in the listed files', () => {
    expect(files.length).toBeGreaterThan(60);
    expect(holding(/\b(it|describe|test)\.(skip|only|todo)\b|\bx(it|describe)\(/)).toEqual([
      'test/api/assistants-questions.e2e-spec.ts',
      'test/libraries/libraries.e2e-spec.ts',
      'test/libraries/opentelemetry.e2e-spec.ts',
      'test/operations/drills.e2e-spec.ts',
      'test/operations/import-montana.e2e-spec.ts',
      'test/platform/example.e2e-spec.ts',
    ]);
  });

  it('run once: nothing repeats a test that failed', () => {
    expect(holding(/\bretryTimes\b/)).toEqual([]);
    for (const path of ['.ci/run', 'package.json', 'jest.config.json'])
      expect(readFileSync(path, 'utf8')).not.toMatch(/retr(y|ies)|onlyFailures/i);
  });

  it('measure no elapsed time, which a busy host increases, except in the listed files', () => {
    const measuring =
      /\b(performance\.now|process\.(hrtime|cpuUsage|threadCpuUsage))\(|\bDate\.now\(\) - \w*([bB]eg[au]n|[sS]tart|[bB]efore|[sS]ince)/;
    expect(holding(measuring).toSorted()).toEqual([
      'src/http/admission/connections.spec.ts', // least time
      'test/api/credential-cache.e2e-spec.ts', // sets the clock
      'test/api/entry-point.e2e-spec.ts', // rate of an event in the elapsed time
      'test/api/profile.e2e-spec.ts', // sets the clock
      'test/oauth/refresh-grace-period.e2e-spec.ts', // discards rounds that were interrupted
      'test/oauth/sign-in.e2e-spec.ts', // least times, and one ratio, tried again
      'test/operations/shutdown.e2e-spec.ts', // least time
    ]);
  });

  it('and their helpers set no property of a global object: later files of the same process would get it', () => {
    const globals = Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z]/.test(name));
    const setting = new RegExp(`^ *(?:${globals.join('|')}|performance|process|globalThis)\\.\\w+ = `, 'm');
    const all = readdirSync('test', { recursive: true, encoding: 'utf8' }).map((path) => `test/${path}`);
    const paths = [...files, ...all.filter((path) => path.endsWith('.ts'))];
    expect(paths.filter((path) => setting.test(readFileSync(path, 'utf8')))).toEqual([]);
  });

  it('set no time limit: jest.config.json sets the limit', () => {
    expect(holding(/\bjest\.setTimeout\(|^ *\}, [\d_]+_000\);$/m)).toEqual([]);
  });

  it('print a line after ten files', async () => {
    const { reporters } = JSON.parse(readFileSync('jest.config.json', 'utf8')) as { reporters: string[] };
    const { default: Reporter } = (await import(resolve(reporters[1]!.replace('<rootDir>/', '')))) as {
      default: new (run: object) => { onTestResult: (test: void, result: void, all: object) => void };
    };
    const reporter = new Reporter({});
    const write = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    for (let i = 0; i < 19; i++) reporter.onTestResult(undefined, undefined, { numTotalTestSuites: 226 });
    const lines = write.mock.calls.map(([line]) => line);
    write.mockRestore();
    expect(lines).toEqual([expect.stringMatching(/^10 of 226 files, \d+ s\n$/)]);
  });

  it('set no fixed seed, and the run sets FUZZ_SEED', () => {
    expect(holding(/\bseed: \d/)).toEqual([]);
    expect(process.env.FUZZ_SEED).toMatch(/^\d+$/);
  });
});
