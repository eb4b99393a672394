import type { QueryRunner } from 'typeorm';
import type { SteppedMigration } from '../src/database/schema/migrate.js';

/**
 * One index for queries by peer and by pair. With two, PostgreSQL also used the smaller one (peers only) for pairs, and compared each line
 * of a feed or import with all connections of a peer: up to 100,000 times the rows. The previous version works unchanged.
 */
export class KeyConnectionsByPeer1763900420000 implements SteppedMigration {
  readonly steps = [
    'CREATE UNIQUE INDEX CONCURRENTLY connections_peer_key ON connections (peer_id, user_id)',
  ];
  readonly stepsBack = [
    'CREATE UNIQUE INDEX CONCURRENTLY connections_user_peer_key ON connections (user_id, peer_id)',
    'CREATE INDEX CONCURRENTLY connections_peer_idx ON connections (peer_id)',
  ];

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE connections DROP CONSTRAINT connections_pair_key;
ALTER TABLE connections ADD CONSTRAINT connections_pair_key UNIQUE USING INDEX connections_peer_key;
DROP INDEX connections_peer_idx;
INSERT INTO compatible_migrations (name) VALUES ('KeyConnectionsByPeer1763900420000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'KeyConnectionsByPeer1763900420000';
ALTER TABLE connections DROP CONSTRAINT connections_pair_key;
ALTER TABLE connections ADD CONSTRAINT connections_pair_key UNIQUE USING INDEX connections_user_peer_key;
`);
  }
}
