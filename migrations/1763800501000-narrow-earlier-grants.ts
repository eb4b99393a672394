import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Narrows older grants as {@link NarrowGrants1763800500000} narrows later ones, without locking all of them. */
export class NarrowEarlierGrants1763800501000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
UPDATE oauth_grants g SET payload = jsonb_set(g.payload, '{resources}', (
  SELECT jsonb_object_agg(key, array_to_string(
    ARRAY(SELECT scope FROM unnest(string_to_array(value, ' ')) scope WHERE scope = ANY (c.granted)), ' '))
  FROM jsonb_each_text(g.payload->'resources')))
FROM oauth_consents c
WHERE c.user_id = g.user_id AND c.client_id = g.client_id AND g.expires_at > now() AND EXISTS (
  SELECT FROM jsonb_each_text(g.payload->'resources') WHERE NOT string_to_array(value, ' ') <@ c.granted);

INSERT INTO compatible_migrations (name) VALUES ('NarrowEarlierGrants1763800501000')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DELETE FROM compatible_migrations WHERE name = 'NarrowEarlierGrants1763800501000'`);
  }
}
