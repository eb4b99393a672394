// Jest's `testRunner`: jest-circus. Node itself loads it with the test file instead of a new, empty context, which would cost each of
// some 70 files three seconds of CPU time.
import { createRequire } from 'node:module';
import { importTest } from './native-modules.mjs';

const require = createRequire(import.meta.url);
const { default: circus } = require('jest-circus/runner');

export default function run(globalConfig, config, environment, runtime, testPath, sendMessageToJest) {
  const own = {
    requireInternalModule: requireAnew,
    requireModule: require,
    unstable_shouldLoadAsEsm: () => true,
    unstable_importModule: (path) => importTest(path, runtime.requireModuleOrMock(testPath, '@jest/globals')),
  };
  const native = new Proxy(runtime, {
    get: (target, name) =>
      own[name] ?? (typeof target[name] === 'function' ? target[name].bind(target) : target[name]),
  });
  return circus(globalConfig, config, environment, native, testPath, sendMessageToJest);
}

/** Loads a module again, since it stores a file's list of tests in a variable. */
function requireAnew(path) {
  delete require.cache[path];
  return require(path);
}
