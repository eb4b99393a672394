// Jest's `testEnvironment` without its own context: tests run with Node's own globals, as the program does.
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

/** Globals that Jest sets for one test file. */
const PER_FILE = ['TEST_TIMEOUT_SYMBOL', 'EVENT_HANDLERS'].map((name) => Symbol.for(name));

/** Greater than 0 while `postgres.it`, `thorough.describe` and the like define tests (database.ts). */
const MARKED_DEPTH = Symbol.for('pua.markedDepth');

export default class NativeEnvironment {
  global = globalThis;
  fakeTimers = null;
  #before = { console: globalThis.console, exit: process.exit };
  #isMarkedOnly;

  constructor({ projectConfig }, { testPath }) {
    this.#isMarkedOnly = (process.env.TEST_MARKED_ONLY ?? '').split(':').includes(testPath);
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  async setup() {
    // Node's own stack traces, with its own source maps.
    delete Error.prepareStackTrace;
    for (const symbol of PER_FILE) delete globalThis[symbol];
  }

  /** Skips tests that `npm test` also runs, in files for which on-postgres.cjs selects only the marked tests. */
  handleTestEvent({ name }, { currentDescribeBlock }) {
    if (name !== 'add_test' || !this.#isMarkedOnly || globalThis[MARKED_DEPTH] > 0) return;
    currentDescribeBlock.children.at(-1).mode = 'skip';
  }

  async teardown() {
    this.moduleMocker.restoreAllMocks();
    this.fakeTimersModern.dispose();
    globalThis.console = this.#before.console;
    process.exit = this.#before.exit;
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return null;
  }
}
