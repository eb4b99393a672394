import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Clients that no admin registered: their id is the address of a document that says who they are. */
export class KnowClientDocuments1763700063000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
-- When the document was read last; NULL for a client that an admin registered.
ALTER TABLE oauth_clients ADD COLUMN document_read_at timestamptz;
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM oauth_clients WHERE document_read_at IS NOT NULL;
ALTER TABLE oauth_clients DROP COLUMN document_read_at;
`);
  }
}
