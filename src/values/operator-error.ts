/** A fault that whoever runs the program can fix: its message says why and what to do instead, is safe to show, and is all they see. */
export class OperatorError extends Error {
  override name = 'OperatorError';
}
