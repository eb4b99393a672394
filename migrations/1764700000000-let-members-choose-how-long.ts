import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The end of an app's access that the member chose. The previous version does not write this column: its grants get the shortest end that
 * it promises. Older consents have no duration: each of their sign-ins lasts 14 days.
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
