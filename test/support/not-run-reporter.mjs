/**
 * Jest's reporter for what a run leaves out: on the embedded database there is no second session, Redis or browser, on PostgreSQL
 * nothing is embedded. One line says how many tests that were, and which command runs them.
 */
export default class NotRunReporter {
  #partly;

  constructor({ testNamePattern }) {
    this.#partly = Boolean(testNamePattern); // most are left out because nobody asked for them
  }

  onRunComplete(_, { numPendingTests: count }) {
    if (count === 0 || this.#partly) return;
    const others = process.env.TEST_DATABASE_URL
      ? 'What is so on the embedded database alone: npm test'
      : 'What needs PostgreSQL, Redis or Chromium, or takes the embedded database long: npm run test:pg';
    process.stderr.write(`\nNot run: ${count} tests. ${others}\n`);
  }
}
