import type { MigrationInterface, QueryRunner } from 'typeorm';
import { FOLD_TOTALS } from './1763700020000-copy-what-decides-and-append-totals.js';

/** Whoever owns the database may make fold_totals, superuser or not: see there. Older programs may go on beside it. */
export class FoldAsAnyOwner1763700120000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(FOLD_TOTALS);
    await runner.query("INSERT INTO compatible_migrations (name) VALUES ('FoldAsAnyOwner1763700120000')");
  }

  /** Leaves the function: as it was before, an owner who is no superuser could not write it. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DELETE FROM compatible_migrations WHERE name = 'FoldAsAnyOwner1763700120000'");
  }
}
