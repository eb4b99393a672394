import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How long a receiver took, for the developer of its app. Programs of the version before leave it out. */
export class TimeWebhookAttempts1763900410000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE webhook_deliveries ADD COLUMN duration_ms integer;
INSERT INTO compatible_migrations (name) VALUES ('TimeWebhookAttempts1763900410000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'TimeWebhookAttempts1763900410000';
ALTER TABLE webhook_deliveries DROP COLUMN duration_ms;
`);
  }
}
