import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An import changes members in small transactions after it has committed everything else: until then, they are here. */
export class KeepMembersPending1763802200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
CREATE TABLE pending_members (
  user_id bigint PRIMARY KEY,
  -- Whether fields that the member changed through the API stay.
  keeps_profile boolean NOT NULL,
  -- As it was staged.
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
