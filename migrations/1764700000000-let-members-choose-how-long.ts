import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The end that a member chose for an app's access. Grants of the previous version, which does not write the column, get the shortest end
 * that it promises. A consent without a duration is from before: it lets each sign-in last 14 days, as it did.
 */
export class LetMembersChooseHowLong1764700000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE oauth_clients ADD COLUMN longest_access text CHECK (longest_access IN ('once', '30', '180', 'unlimited'));
ALTER TABLE oauth_consents ADD COLUMN duration text, ADD COLUMN access_ends_at timestamptz;
ALTER TABLE oauth_grants ADD COLUMN access_ends_at timestamptz;
ALTER TABLE oauth_grants ALTER COLUMN access_ends_at SET DEFAULT now() + interval '14 days';
INSERT INTO compatible_migrations (name) VALUES ('LetMembersChooseHowLong1764700000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'LetMembersChooseHowLong1764700000000';
ALTER TABLE oauth_grants DROP COLUMN access_ends_at;
ALTER TABLE oauth_consents DROP COLUMN duration, DROP COLUMN access_ends_at;
ALTER TABLE oauth_clients DROP COLUMN longest_access;
`);
  }
}
