/** What was asked cannot be done; the message says why and what to do instead, and is safe to show. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
