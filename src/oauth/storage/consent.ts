/** What a member answered when a client asked last, as names of scopes. */
export interface Consent {
  readonly granted: readonly string[];
  readonly rejected: readonly string[];
}
