import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * One index for a member's own changes and for shared ones: one less to open, lock and write with each change. Whoever reads a
 * member's looks through what they have of a resource in the index alone. Words that triggers alone write need no CHECK.
 */
export class IndexChangesOnce1763700071000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE INDEX changes_of_idx ON changes (user_id, resource, id, changed_in, sequence);
DROP INDEX changes_member_idx, changes_shared_idx;
ALTER TABLE changes DROP CONSTRAINT changes_resource_check, DROP CONSTRAINT changes_kind_check;
INSERT INTO compatible_migrations (name) VALUES ('IndexChangesOnce1763700071000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'IndexChangesOnce1763700071000';
ALTER TABLE changes
  ADD CONSTRAINT changes_resource_check CHECK (resource IN ('profile', 'events', 'connections', 'achievements', 'people')),
  ADD CONSTRAINT changes_kind_check CHECK (kind IN ('updated', 'removed', 'returned'));
CREATE INDEX changes_member_idx ON changes (user_id, changed_in, sequence) WHERE user_id IS NOT NULL;
CREATE INDEX changes_shared_idx ON changes (resource, id, changed_in, sequence) WHERE user_id IS NULL;
DROP INDEX changes_of_idx;
`);
  }
}
