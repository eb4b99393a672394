import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Looks through what stood in the database before constraints were added to it. Those held for every write from then on; this
 * reads whole tables, and keeps neither readers nor writers out meanwhile (SHARE UPDATE EXCLUSIVE).
 */
export class ValidateConstraints1763700033000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Tables were written anew, and nothing is known of them: without that PostgreSQL compares two large ones row by row.
    await runner.query(
      'ANALYZE users, events, participants, connections, achievements, user_achievements, user_totals, event_totals',
    );
    await runner.query(`
DO $$ DECLARE
  c record;
BEGIN
  FOR c IN SELECT conrelid::regclass AS of, conname FROM pg_constraint
      WHERE connamespace = 'public'::regnamespace AND NOT convalidated ORDER BY 1, 2 LOOP
    EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT %I', c.of, c.conname);
  END LOOP;
END $$`);
  }

  /** What was looked through holds. */
  async down(): Promise<void> {}
}
