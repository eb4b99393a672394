import pg from 'pg';
import { expect, it } from '@jest/globals';
import { SessionClient } from './session.js';
import { Unavailable } from './unavailable.js';

it('every caller that waits for the pool gets an error with the path of an unreadable CA certificate', async () => {
  const url = 'postgres://nobody@127.0.0.1:1/none?sslmode=verify-full&sslrootcert=/nowhere/ca.pem';
  const pool = new pg.Pool({
    Client: SessionClient as unknown as typeof pg.Client,
    connectionString: url,
    primary: true,
    max: 1,
  } as pg.PoolConfig);
  const faults = await Promise.all(
    [1, 2, 3].map(() =>
      pool.connect().then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  );
  for (const fault of faults) {
    expect(fault).toBeInstanceOf(Unavailable);
    expect((fault as Error).message).toContain('/nowhere/ca.pem');
  }
  await pool.end();
});
