/** A problem that the operator can fix. The message states cause and remedy, and is safe to show. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
