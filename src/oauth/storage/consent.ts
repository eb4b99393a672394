/** A member's latest answer to a client's consent prompt, as scope names. */
export interface Consent {
  readonly granted: readonly string[];
  readonly rejected: readonly string[];
}
