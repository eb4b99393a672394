import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Response } from 'supertest';
import { thorough } from '../support/database.js';
import { TestApi } from '../support/api.js';

let api: TestApi;
beforeAll(async () => void (api = await TestApi.start()));
afterAll(() => api.close());

const query = (sql: string) => api.dataSource.query<unknown>(sql);

/** Asks until the answer is of this status: what is told may be a quarter of a second old. */
async function ready(status: number): Promise<Response> {
  for (;;) {
    const response = await api.send('GET', '/readyz');
    if (response.status === status) return response;
  }
}

/** What is told while the database is as the statement leaves it, until the other one has put it right. */
async function refusal(change: string, undo: string): Promise<unknown> {
  await query(change);
  try {
    return ((await ready(503)).body as { detail: unknown }).detail;
  } finally {
    await query(undo);
  }
}

describe('GET /livez', () => {
  it('says that the process answers', async () => {
    const { status, body } = await api.send('GET', '/livez');
    expect([status, body]).toEqual([200, { status: 'ok' }]);
  });
});

describe('GET /readyz', () => {
  it('says that requests may be sent here', async () => {
    expect((await ready(200)).body).toEqual({ status: 'ok' });
  });

  thorough.it('says no where the database lacks a migration', async () => {
    const [last] = (await query('SELECT timestamp, name FROM migrations ORDER BY id DESC LIMIT 1')) as [
      { timestamp: number; name: string },
    ];
    const detail = await refusal(
      `DELETE FROM migrations WHERE name = '${last.name}'`,
      `INSERT INTO migrations (timestamp, name) VALUES (${last.timestamp}, '${last.name}')`,
    );
    expect(detail).toBe('The database lacks migrations.');
    await ready(200);
  });

  it('says no where nobody knows what was migrated', async () => {
    const detail = await refusal(
      'ALTER TABLE migrations RENAME TO forgotten',
      'ALTER TABLE forgotten RENAME TO migrations',
    );
    expect(detail).toBe('The database lacks migrations.');
    await ready(200);
  });

  it('says yes while the database is migrated for the next version, which servers get one after the other', async () => {
    const added = await query(
      `INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'Future9999999999999') RETURNING id`,
    );
    expect(added).toHaveLength(1);
    // So that nothing of before is remembered.
    await refusal('ALTER TABLE migrations RENAME TO forgotten', 'ALTER TABLE forgotten RENAME TO migrations');
    await ready(200);
    await query(`DELETE FROM migrations WHERE name = 'Future9999999999999'`);
  });
});
