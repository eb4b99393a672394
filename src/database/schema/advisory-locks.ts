/** Keys of advisory locks. A key must not change while versions with the old key may still run. */
export const ADVISORY_LOCKS = {
  migrations: 7_862_013_001,
  /** Only one transaction at a time changes the signing keys. */
  signingKeys: 7_862_013_002,
  /** The function fold_totals takes this lock. */
  foldTotals: 7_862_013_003,
  /** Only one repair of denormalized columns and counters runs at a time. */
  mend: 7_862_013_004,
  /** An import fails while another import holds this lock. */
  import: 7_862_013_005,
  /** The function copy_names takes this lock. */
  copyNames: 7_862_013_006,
  /** Only one transaction at a time runs writeNextMembers, which writes members that an import left pending. */
  pendingMembers: 7_862_013_007,
} as const;
