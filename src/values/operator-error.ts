/** A problem that the operator can fix; its message is safe to show. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
