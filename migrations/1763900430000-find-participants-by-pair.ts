import type { QueryRunner } from 'typeorm';
import type { SteppedMigration } from '../src/database/schema/migrate.js';

/**
 * An index of event and member, like that of connections in KeyConnectionsByPeer1763900420000: PostgreSQL used the index of events and
 * roles for pairs, and compared each changed RSVP with all RSVPs of the event. The few co-organizers have their own small index. The
 * previous version works unchanged.
 */
export class FindParticipantsByPair1763900430000 implements SteppedMigration {
  readonly steps = [
    'CREATE INDEX CONCURRENTLY participants_event_user_idx ON participants (event_id, user_id)',
    `CREATE INDEX CONCURRENTLY participants_co_organizers_idx ON participants (event_id, user_id) WHERE role = 'co_organizer'`,
  ];
  readonly stepsBack = ['CREATE INDEX CONCURRENTLY participants_event_idx ON participants (event_id, role)'];

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
DROP INDEX participants_event_idx;
INSERT INTO compatible_migrations (name) VALUES ('FindParticipantsByPair1763900430000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
DELETE FROM compatible_migrations WHERE name = 'FindParticipantsByPair1763900430000';
DROP INDEX participants_event_user_idx, participants_co_organizers_idx;
`);
  }
}
