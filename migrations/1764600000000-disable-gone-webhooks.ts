import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A third reason for a disabled webhook endpoint: it responded with 410. */
export class DisableGoneWebhooks1764600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE webhook_endpoints DROP CONSTRAINT webhook_endpoints_disabled_because_check;
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_disabled_because_check
  CHECK (disabled_because IN ('admin', 'failing', 'gone'));
INSERT INTO compatible_migrations (name) VALUES ('DisableGoneWebhooks1764600000000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'DisableGoneWebhooks1764600000000';
UPDATE webhook_endpoints SET disabled_because = 'failing' WHERE disabled_because = 'gone';
ALTER TABLE webhook_endpoints DROP CONSTRAINT webhook_endpoints_disabled_because_check;
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_disabled_because_check
  CHECK (disabled_because IN ('admin', 'failing'));
`);
  }
}
