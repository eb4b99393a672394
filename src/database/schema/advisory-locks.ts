/** A number must not change while other versions with the same lock may run next to this one. */
export const ADVISORY_LOCKS = {
  /** Migrations and rollbacks run one at a time. */
  migrations: 7_862_013_001,
  /** Concurrent processes create only one set of signing keys. */
  signingKeys: 7_862_013_002,
  /** Taken by the function fold_totals. */
  foldTotals: 7_862_013_003,
  /** Two repairs would both add the missing counts. */
  mend: 7_862_013_004,
  /** A second import is rejected. */
  import: 7_862_013_005,
  /** Taken by the function copy_names. */
  copyNames: 7_862_013_006,
  /** Pending members of an import are changed by one process at a time. */
  pendingMembers: 7_862_013_007,
} as const;
