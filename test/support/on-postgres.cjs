const { readFileSync } = require('node:fs');

const SKIPS_ON_EMBEDDED = /\b((postgres|thorough)\.(it|describe)|onPostgres|isThorough)\b/;

/**
 * Jest's `--filter` of `.ci/run` on PostgreSQL: selects the files with tests that `npm test` skipped, and the contract in test/api.
 * Without it, `npm run test:pg` runs every file.
 */
module.exports = function filter(paths) {
  const isSelected = (path) =>
    path.includes('/test/api/') || SKIPS_ON_EMBEDDED.test(readFileSync(path, 'utf8'));
  return { filtered: paths.filter(isSelected) };
};
