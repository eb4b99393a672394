// Jest's `testSequencer` of a mutation run: keeps the given order of files.
import Sequencer from '@jest/test-sequencer';

const order = process.env.TEST_ORDER.split('\n');

export default class InOrder extends Sequencer {
  sort(tests) {
    return tests.toSorted((one, other) => order.indexOf(one.path) - order.indexOf(other.path));
  }
}
