// Jest's `testEnvironment` without its own context: tests run with Node's own globals, as the program does.
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

/** Globals that Jest sets for one test file. */
const PER_FILE = ['TEST_TIMEOUT_SYMBOL', 'EVENT_HANDLERS'].map((name) => Symbol.for(name));

export default class NativeEnvironment {
  global = globalThis;
  fakeTimers = null;
  #before = { console: globalThis.console, exit: process.exit };

  constructor({ projectConfig }) {
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  async setup() {
    // Node's own stack traces, with its own source maps.
    delete Error.prepareStackTrace;
    for (const symbol of PER_FILE) delete globalThis[symbol];
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
