/** Keys of advisory locks, besides those that only schema/ uses. A key must not change while versions with the old key may still run. */
export const ADVISORY_LOCKS = {
  migrations: 7_862_013_001,
  /** Concurrent processes create only one set of signing keys. */
  signingKeys: 7_862_013_002,
  /** The function fold_totals takes this lock. */
  foldTotals: 7_862_013_003,
  /** Prevents two repairs from both adding the missing counts. */
  mend: 7_862_013_004,
  /** An import fails while another import holds this lock. */
  import: 7_862_013_005,
  /** The function copy_names takes this lock. */
  copyNames: 7_862_013_006,
  /** Only one process at a time runs writeNextMembers, which writes members that an import left pending. */
  pendingMembers: 7_862_013_007,
} as const;
