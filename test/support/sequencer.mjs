// Jest's `testSequencer`: its own, by how long each file took the last time, and where that is not known, as in a fresh clone, by size.
// These take longer than their size says, and at the end of a run would leave the other processor idle.
import Sequencer from '@jest/test-sequencer';

const LONG = ['/test/repository/docs.spec.ts', '/src/http/pipeline/connections.spec.ts'];
const isLong = ({ path }) => LONG.some((file) => path.endsWith(file));

export default class LongFirst extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
