// Jest's `testRunner`: its own (jest-circus), which loads itself and the test file through Node in place of a context that begins
// with nothing loaded. That would cost each of some 70 files three seconds of a processor.
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

/** The list of a file's tests is a variable of that module. */
function requireAnew(path) {
  delete require.cache[path];
  return require(path);
}
