/**
 * Jest's reporter for what a run leaves out: on the embedded database there is no second session, Redis or browser, on PostgreSQL
 * nothing is embedded. One line says how many tests that were, and which command runs them.
 */
export default class NotRunReporter {
  #asked;

  constructor({ testNamePattern }) {
    this.#asked = Boolean(testNamePattern); // then most are left out because nobody asked for them
  }

  onRunComplete(_, { numPendingTests: count }) {
    if (count === 0 || this.#asked) return;
    const [why, command] = process.env.TEST_DATABASE_URL
      ? ['are about the embedded database', 'npm test']
      : ['need PostgreSQL, Redis or Chromium', 'npm run test:pg'];
    process.stderr.write(`\nNot run: ${count} tests, which ${why}: ${command}\n`);
  }
}
