import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An import's changes to members wait in this table until the import has committed all else; small transactions then apply them. */
export class KeepMembersPending1763802200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE pending_members (
  user_id bigint PRIMARY KEY,
  -- Whether to keep fields that the member changed through the API.
  keeps_profile boolean NOT NULL,
  -- The staged record.
  record jsonb NOT NULL
);
INSERT INTO compatible_migrations (name) VALUES ('KeepMembersPending1763802200000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'KeepMembersPending1763802200000';
DROP TABLE pending_members;
`);
  }
}
