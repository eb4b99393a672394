const EVERY_FILES = 10;

/** Jest's reporter of a whole run: counts completed files, and the tests that the run skipped because of its database. */
export default class RunReporter {
  #done = 0;
  #startedAt = Date.now();
  #partly;

  constructor({ testNamePattern }) {
    this.#partly = Boolean(testNamePattern); // most tests are skipped because of the pattern
  }

  onTestResult(_, __, { numTotalTestSuites: all }) {
    if (++this.#done % EVERY_FILES !== 0) return;
    const seconds = Math.round((Date.now() - this.#startedAt) / 1000);
    process.stderr.write(`${this.#done} of ${all} files, ${seconds} s\n`);
  }

  onRunComplete(_, { numPendingTests: count }) {
    if (count === 0 || this.#partly) return;
    const others = process.env.TEST_DATABASE_URL
      ? 'npm test runs them on the embedded database.'
      : 'They need PostgreSQL or Chromium, or take long: npm run test:pg';
    process.stderr.write(`\nNot run: ${count} tests. ${others}\n`);
  }
}
