/** Numbers of locks. A number must not change while other versions with the same lock may run at the same time. */
export const ADVISORY_LOCKS = {
  /** Migrations and rollbacks run one at a time. */
  migrations: 7_862_013_001,
  /** Concurrent processes create only one set of signing keys. */
  signingKeys: 7_862_013_002,
  /** The function fold_totals takes this lock. */
  foldTotals: 7_862_013_003,
  /** Prevents that two repairs both add the missing counts. */
  mend: 7_862_013_004,
  /** Rejects a second import. */
  import: 7_862_013_005,
  /** The function copy_names takes this lock. */
  copyNames: 7_862_013_006,
  /** Only one process at a time changes the pending members of an import. */
  pendingMembers: 7_862_013_007,
} as const;
