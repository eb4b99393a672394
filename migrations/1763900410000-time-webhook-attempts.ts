import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Response time of a webhook endpoint, for the app's developer. The previous version does not record it. */
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
