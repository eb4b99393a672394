import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Checks older records against the wider constraint without blocking readers or writers (SHARE UPDATE EXCLUSIVE). */
export class ValidatePlatformChanges1764900001000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
ALTER TABLE platform_changes VALIDATE CONSTRAINT platform_changes_type_check;
INSERT INTO compatible_migrations (name) VALUES ('ValidatePlatformChanges1764900001000');
`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      "DELETE FROM compatible_migrations WHERE name = 'ValidatePlatformChanges1764900001000'",
    );
  }
}
