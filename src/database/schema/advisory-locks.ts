/**
 * Numbers of PostgreSQL's advisory locks, all in one place so no two coincide. A number never changes while versions that know it
 * may run beside this one.
 */
export const ADVISORY_LOCKS = {
  /** While migrations run or are undone: processes that start at once wait for one another. */
  migrations: 7_862_013_001,
  /** While the set of signing keys changes: processes that start at once make one set. */
  signingKeys: 7_862_013_002,
  /** While totals are folded: one at a time. Taken by the function fold_totals itself. */
  foldTotals: 7_862_013_003,
  /** While totals are repaired: two repairs would both append what is missing. */
  mend: 7_862_013_004,
  /** During an import: a second one is refused. */
  import: 7_862_013_005,
  /** While names are copied to connections: one at a time. Taken by the function copy_names itself. */
  copyNames: 7_862_013_006,
  /** While members of an import are changed: one at a time. */
  pendingMembers: 7_862_013_007,
} as const;
