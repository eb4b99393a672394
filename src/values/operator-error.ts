/** A fault that the operator can fix. Its message says why and what to do instead, is safe to show, and is all that they see. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
