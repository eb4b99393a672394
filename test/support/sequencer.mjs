// Jest's `testSequencer`: Jest's own, which orders files by their last duration, or by size if that is unknown, as in a fresh
// clone. The listed files take longer than their size suggests, and at the end of a run would leave the other processor idle.
import { createHash } from 'node:crypto';
import Sequencer from '@jest/test-sequencer';

const LONG = [
  '/test/libraries/libraries.e2e-spec.ts',
  '/test/repository/recipe.e2e-spec.ts',
  '/test/repository/docs.snippets.e2e-spec.ts',
  '/test/repository/docs.spec.ts',
  '/test/operations/rolling-restart.e2e-spec.ts',
  '/test/operations/proxies.e2e-spec.ts',
  '/test/site/every-page.e2e-spec.ts',
  '/test/oauth/pages.e2e-spec.ts',
  '/test/database/first-minute.e2e-spec.ts',
  '/src/http/admission/connections.spec.ts',
];
const isLong = ({ path }) => LONG.some((file) => path.endsWith(file));

export default class LongFirst extends Sequencer {
  #random;

  constructor({ globalConfig: { randomize, seed } }) {
    super();
    this.#random = randomize
      ? (path) => createHash('sha1').update(`${seed} ${path}`).digest('hex')
      : undefined;
  }

  sort(tests) {
    const random = this.#random;
    // Files of one worker share the loaded program. With --randomize, each file runs after different files.
    if (random) return tests.toSorted((a, b) => random(a.path).localeCompare(random(b.path)));
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
