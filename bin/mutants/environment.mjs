// Jest's `testEnvironment` of a mutation run: ends the run at the first failure and records the failed test. With `NODE_V8_COVERAGE`,
// records each test file's duration and the functions executed, including those of started programs.
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { takeCoverage } from 'node:v8';
import NativeEnvironment from '../../test/support/native-environment.mjs';

const { NODE_V8_COVERAGE: coverage, FAILED_TEST: failedTest } = process.env;
const FAILURES = new Set(['test_fn_failure', 'hook_failure', 'error']);
/** Set by test/support/command-line.ts, which runs the commands of all files. */
const PUA_HOST = Symbol.for('process that runs pua');

export default class MutationEnvironment extends NativeEnvironment {
  #path;
  #begun = performance.now();

  constructor(config, context) {
    super(config);
    this.#path = context.testPath;
  }

  handleTestEvent({ name, test, describeBlock, error }) {
    if (!FAILURES.has(name)) return undefined;
    const { name: title } = test ?? describeBlock ?? { name: String(error) };
    writeFileSync(failedTest, `${this.#path.replace(`${process.cwd()}/`, '')}: ${title}`);
    process.kill(process.pid, 'SIGTERM'); // then test/support/global-setup.mjs removes the folders
    return new Promise(() => undefined);
  }

  async teardown() {
    await super.teardown();
    if (coverage === undefined) return;
    const host = globalThis[PUA_HOST];
    if (host?.connected) {
      host.disconnect();
      await once(host, 'exit');
    }
    takeCoverage();
    const own = join(coverage, `of-${this.#path.replaceAll('/', '-')}`);
    mkdirSync(own);
    for (const name of readdirSync(coverage))
      if (name.endsWith('.json')) renameSync(join(coverage, name), join(own, name));
    writeFileSync(
      join(own, 'file.txt'),
      JSON.stringify({ path: this.#path, ms: Math.ceil(performance.now() - this.#begun) }),
    );
  }
}
