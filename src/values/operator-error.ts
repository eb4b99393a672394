/** A problem that the operator can fix. Its message says why it happened and what to do, is safe to show, and is all that they see. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
