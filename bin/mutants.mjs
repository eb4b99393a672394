#!/usr/bin/env node
// Measures whether tests notice mistakes: `npm run mutants [-- area …] [--most <n>] [--seed <n>]`. Makes one mistake at a time
// (bin/mutants/mistakes.mjs) in a copy's build. Runs nearby test files that execute the changed function, until one fails: on the embedded
// database, then on PostgreSQL. `--seed` (1) draws `--most` (20) mistakes per area. Mistakes that the compiler notices or that change
// nothing (bin/mutants/equivalents.mjs) are replaced. Exits with 1 if tests notice fewer than 85 % in an area.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { transformSync } from '@swc/core';
import { EQUIVALENTS } from './mutants/equivalents.mjs';
import { mistakesIn, typeChecker } from './mutants/mistakes.mjs';

const LEAST = 0.85;
/** A mistake may cause an endless loop: it counts as noticed when the tests take this many times as long. */
const PATIENCE = 4;
const MIN_PATIENCE_MS = 60_000;

/** The source of an area, and the tests next to it. */
const AREAS = {
  auth: {
    source: 'src/auth/**/*.ts',
    tests: [
      'src/auth/**',
      'test/api/{credential*,revocation,errors,rate-limits,usage,shared-limits}.*',
      'test/oauth/{flow,attacks,account,developer}.*',
      'test/cli/cli.e2e-spec.ts',
      'test/operations/metrics.*',
    ],
  },
  changes: {
    source: 'src/{features/sync,platform}/*.ts',
    tests: [
      'test/api/{changes,sync,sync.properties,notified-apps,openapi}.*',
      'test/platform/*',
      'test/database/replicas.*',
    ],
  },
  webhooks: {
    source: 'src/webhooks/*.ts',
    tests: [
      'test/webhooks/*',
      'src/runtime/public-https*',
      'test/{database/replicas,operations/audited-acts}.*',
    ],
  },
  keyset: {
    source: 'src/database/list.ts',
    tests: ['test/api/{paging,paging.properties,events,connections,achievements}.*'],
  },
  'token-exchange': {
    source: 'src/authorization-server/requests/{token-exchange,stored-token,kept-response}.ts',
    tests: [
      'src/authorization-server/**',
      'test/oauth/{refresh,refresh-grace-period,flow,inputs,races,attacks,consents,audit}.*',
    ],
  },
  import: {
    source: 'src/{import/*,resources/*/import}.ts',
    tests: ['src/import/**', 'test/operations/import*', 'test/platform/feed.*'],
  },
  clients: {
    source: 'src/clients/*.ts',
    tests: [
      'src/clients/**',
      'test/oauth/{developer,cli,client-documents,names,account,key-rotation,origins,openid,audit}.*',
      'test/{cli/cli,operations/audited-acts}.e2e-spec.ts',
    ],
  },
  admission: {
    source: 'src/http/{admission/*,pipeline/entry-point}.ts',
    tests: ['src/http/**', 'test/api/entry-point.*'],
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { most: { type: 'string', default: '20' }, seed: { type: 'string', default: '1' } },
});
const unknown = positionals.filter((name) => !(name in AREAS));
if (unknown.length > 0) {
  console.error(`No such area: ${unknown.join(', ')}. There are ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'pua-mutants-'));
chmodSync(folder, 0o711); // some tests keep their clusters here, and PostgreSQL runs as another user
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(130));
const copy = join(folder, 'copy');
const { stdout: tracked } = spawnSync('git', ['ls-files', '-z', '-c', '-o', '--exclude-standard'], {
  encoding: 'utf8',
});
const paths = tracked.split('\0').filter((path) => path && existsSync(path));
for (const path of paths) cpSync(path, join(copy, path));
symlinkSync(resolve('node_modules'), join(copy, 'node_modules'));

/**
 * Runs test files, in this order, until one fails.
 *
 * @returns the title of the failed test, if any
 */
function firstFailure(files, { environment, patienceMs, coverage }) {
  const run = join(folder, 'run');
  const [failed, said] = [join(run, 'failed.txt'), join(run, 'said.txt')];
  mkdirSync(run);
  const parameters = ['--runInBand', '--bail', '--silent', '--runTestsByPath', ...files];
  const own = ['--env', './bin/mutants/environment.mjs', '--testSequencer', './bin/mutants/order.mjs'];
  const { status, pid } = spawnSync(
    process.execPath,
    ['node_modules/jest/bin/jest.js', ...parameters, ...own],
    {
      cwd: copy,
      env: {
        ...environment,
        ...(coverage && { NODE_V8_COVERAGE: coverage }),
        TMPDIR: run,
        FAILED_TEST: failed,
        TEST_ORDER: files.map((path) => join(copy, path)).join('\n'),
      },
      stdio: ['ignore', 'ignore', openSync(said, 'w')],
      detached: true, // its own group, to end all processes that tests started
      ...(patienceMs && { timeout: patienceMs, killSignal: 'SIGKILL' }),
    },
  );
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the group has already ended
  }
  const reason = readFileSync(said, 'utf8').slice(-2_000);
  const sentence = existsSync(failed) ? readFileSync(failed, 'utf8') : `no test ran to its end: ${reason}`;
  for (const name of readdirSync(run)) rmSync(join('/dev/shm', name), { recursive: true, force: true });
  rmSync(run, { recursive: true, force: true });
  return status === 0 ? undefined : sentence;
}

/**
 * Runs the tests without a mistake.
 *
 * @returns for each file, its duration and the functions that it executes, by script
 * @throws if tests fail without a mistake
 */
function measure(files, environment) {
  const coverage = join(folder, 'coverage');
  mkdirSync(coverage);
  const failure = firstFailure(files, { environment, coverage });
  if (failure) throw new Error(`The tests fail without a mistake: ${failure}`);
  const measured = readdirSync(coverage)
    .map((name) => join(coverage, name))
    .filter((path) => existsSync(join(path, 'file.txt')))
    .map((path) => {
      const { path: file, ms } = JSON.parse(readFileSync(join(path, 'file.txt'), 'utf8'));
      const scripts = globSync(join(path, '*.json'))
        .flatMap((report) => JSON.parse(readFileSync(report, 'utf8')).result)
        .filter(({ url }) => url.includes('/dist/src/'));
      return { path: file.slice(copy.length + 1), ms, scripts };
    });
  rmSync(coverage, { recursive: true });
  return measured;
}

/**
 * The test files that execute the function around a place in a script: unit specs first, then by duration. If the place is outside of
 * functions, or in one that runs only while the module loads: all files, those that execute any function of the script first.
 */
function order(measured, script, offset) {
  const reports = measured.map(({ scripts }) =>
    scripts
      .filter(({ url }) => url.endsWith(script))
      .map(({ functions }) => functions.map(({ ranges }) => ranges[0])),
  );
  const isModule = ({ startOffset }) => startOffset === 0;
  const innermost = reports
    .flat(2)
    .filter((one) => !isModule(one) && one.startOffset <= offset && offset < one.endOffset)
    .reduce((start, { startOffset }) => Math.max(start, startOffset), 0);
  const calls = (report) => report.some(({ startOffset, count }) => startOffset === innermost && count > 0);
  const loads = (report) => report.some((one) => isModule(one) && one.count > 0);
  const callers = reports.flat().filter(calls);
  const isOfAll = innermost === 0 || (callers.length > 0 && callers.every(loads));
  return measured
    .map((file, i) => {
      const isFar = reports[i].flat().every((one) => isModule(one) || one.count === 0);
      const place = (isFar ? 2 : 0) + (file.path.startsWith('src/') ? 0 : 1);
      return { file, isCalled: reports[i].some(calls), place };
    })
    .filter(({ isCalled }) => isCalled || isOfAll)
    .toSorted((one, other) => one.place - other.place || one.file.ms - other.file.ms)
    .map(({ file }) => file);
}

const compile = (path, text) => transformSync(text, { cwd: copy, filename: path, sourceMaps: false }).code;

/** @returns the first test that notices a mistake */
function noticedBy(mistake, measurements) {
  const [original, wrong] = [readFileSync(mistake.path, 'utf8'), mistake.text].map((text) =>
    compile(mistake.path, text),
  );
  let offset = 0;
  while (offset < original.length && original[offset] === wrong[offset]) offset++;
  const script = join('dist', mistake.path.replace(/\.ts$/, '.js'));
  for (const { environment, measured } of measurements()) {
    const files = order(measured, script, offset);
    if (files.length === 0) continue; // without paths, Jest would run all tests
    const right = readFileSync(join(copy, script));
    writeFileSync(join(copy, script), wrong);
    const patienceMs = MIN_PATIENCE_MS + PATIENCE * files.reduce((sum, { ms }) => sum + ms, 0);
    const sentence = firstFailure(
      files.map(({ path }) => path),
      { environment, patienceMs },
    );
    writeFileSync(join(copy, script), right);
    if (sentence) return sentence;
  }
  return undefined;
}

/** The possible mistakes in an order that is the same for the same seed. */
function* drawn(all, seed) {
  let state = seed;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const left = [...all];
  while (left.length > 0) yield left.splice(Math.floor(random() * left.length), 1)[0];
}

const { TEST_DATABASE_URL: url, ...embedded } = process.env;
const environments = url === undefined ? [embedded] : [embedded, { ...embedded, TEST_DATABASE_URL: url }];
const isTypeCorrect = typeChecker();
const firstLine = (code) => code.split('\n')[0];

let isBad = false;
for (const name of positionals.length > 0 ? positionals : Object.keys(AREAS)) {
  const { source, tests } = AREAS[name];
  const files = globSync(tests).filter((path) => path.endsWith('spec.ts'));
  const kept = [];
  const measurements = function* () {
    for (const [index, environment] of environments.entries())
      yield (kept[index] ??= { environment, measured: measure(files, environment) });
  };
  const all = globSync(source)
    .filter((path) => !path.endsWith('.spec.ts'))
    .toSorted()
    .flatMap(mistakesIn);
  const most = Math.min(all.length, Number(values.most));
  let [count, noticed] = [0, 0];
  for (const mistake of drawn(all, Number(values.seed))) {
    if (count === most) break;
    const { path, line, code, was, by } = mistake;
    const said = `${path}:${line}  ${firstLine(was)}  →  ${firstLine(by)}`;
    const same = EQUIVALENTS.find(
      (one) => one.path === path && one.code === code && one.by === firstLine(by),
    );
    if (same) console.log(`  makes no difference  ${said}  (${same.because})`);
    if (same || !isTypeCorrect(path, mistake.text)) continue;
    const begun = performance.now();
    const sentence = noticedBy(mistake, measurements);
    count++;
    if (sentence) noticed++;
    const seconds = ((performance.now() - begun) / 1000).toFixed(0);
    console.log(
      `  ${sentence ? 'noticed' : 'NOT NOTICED'}  ${said}  (${seconds} s${sentence ? `, ${sentence}` : ''})`,
    );
  }
  isBad ||= noticed < LEAST * count;
  console.log(`${name}: ${noticed} of ${count} noticed (${all.length} possible)`);
}
process.exitCode = isBad ? 1 : 0;
