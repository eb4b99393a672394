const { readFileSync } = require('node:fs');

const MARKED = /\b(postgres|thorough)\.(it|describe)\b/;
/** Tests of the API contract. */
const ALWAYS = /\/test\/api\//;
/** Files whose other tests may differ on PostgreSQL as well: folders, and files that check which database they use. */
const OF_DATABASE = /\/test\/(database|webhooks)\//;
const ASKS = /\b(onPostgres|isThorough)\b/;
/** Third-party libraries, if `LIBRARIES` is set. */
const LIBRARIES = /\/test\/libraries\//;

/**
 * Jest's `--filter` of `.ci/run` on PostgreSQL: selects the tests that `npm test` skipped, and all tests of the files above.
 * Without it, `npm run test:pg` runs every test.
 */
module.exports = function filter(paths) {
  const texts = new Map(paths.map((path) => [path, readFileSync(path, 'utf8')]));
  const isWhole = (path) =>
    ALWAYS.test(path) ||
    ASKS.test(texts.get(path)) ||
    (process.env.LIBRARIES && LIBRARIES.test(path)) ||
    (OF_DATABASE.test(path) && MARKED.test(texts.get(path)));
  const whole = paths.filter(isWhole);
  const partly = paths.filter((path) => !whole.includes(path) && MARKED.test(texts.get(path)));
  process.env.TEST_MARKED_ONLY = partly.join(':'); // workers inherit it; native-environment.mjs skips the other tests
  return { filtered: [...whole, ...partly] };
};
