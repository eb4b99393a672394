import { globSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { WriteGate } from '../../src/database/postgres/bounded-client.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { createTestDatabase, testConfig } from '../support/database.js';

/** One that refuses writes: three of them were not confirmed. */
function closedGate(): WriteGate {
  const gate = new WriteGate();
  for (let i = 0; i < 3; i++) gate.unconfirmed();
  return gate;
}

it('writes are refused while no standby confirms them, by whichever function of ours; reads are not', async () => {
  const { environment, drop } = await createTestDatabase();
  const dataSource = await createDataSource(testConfig(environment), 'maintenance').initialize();
  const writers = await dataSource.query<{ name: string }[]>(
    `SELECT p.proname AS name FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
  AND p.prorettype <> 'trigger'::regtype AND p.prosrc ~ '\\m(INSERT|UPDATE|DELETE)\\M'`,
  );
  await dataSource.destroy();
  await drop();
  const source = globSync('src/**/*.ts')
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n');
  const called = writers.map(({ name }) => name).filter((name) => source.includes(`SELECT ${name}(`));
  expect(called).toContain('coalesce_changes');
  for (const name of called)
    expect(() => closedGate().pass(`SELECT ${name}($1) AS done`)).toThrow(
      'writes are not confirmed by the standby',
    );
  expect(() => closedGate().pass('SELECT username FROM users WHERE id = $1')).not.toThrow();
});
