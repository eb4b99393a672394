/**
 * Jest's reporter of skipped tests: on the embedded database there is no second session, Redis or browser; on PostgreSQL nothing is
 * embedded. Prints in one line how many were skipped, and which command runs them.
 */
export default class NotRunReporter {
  #partly;

  constructor({ testNamePattern }) {
    this.#partly = Boolean(testNamePattern); // most tests are skipped because of the pattern
  }

  onRunComplete(_, { numPendingTests: count }) {
    if (count === 0 || this.#partly) return;
    const others = process.env.TEST_DATABASE_URL
      ? 'What is so on the embedded database alone: npm test'
      : 'What needs PostgreSQL, Redis or Chromium, or takes the embedded database long: npm run test:pg';
    process.stderr.write(`\nNot run: ${count} tests. ${others}\n`);
  }
}
