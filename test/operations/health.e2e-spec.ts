import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Response } from 'supertest';
import { thorough } from '../support/database.js';
import { freePort } from '../support/oauth.js';
import { TestApi } from '../support/api.js';

let api: TestApi;
let metricsPort: number;
beforeAll(async () => {
  metricsPort = await freePort();
  api = await TestApi.start({ metricsPort });
});
afterAll(() => api.close());

const query = (sql: string) => api.dataSource.query<unknown>(sql);

/** Repeats the request until it has this status: a result may be a quarter of a second old. */
async function ready(status: number): Promise<Response> {
  for (;;) {
    const response = await api.send('GET', '/readyz');
    if (response.status === status) return response;
  }
}

/** Value of server_ready, without any request to /readyz. */
async function metric(): Promise<string | undefined> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return /^server_ready (\d)$/m.exec(text)?.[1];
}

/** Detail of the 503 while `change` is in effect; `undo` reverts it. */
async function refusal(change: string, undo: string): Promise<unknown> {
  await query(change);
  try {
    const { body } = await ready(503);
    expect(await metric()).toBe('0');
    return (body as { detail: unknown }).detail;
  } finally {
    await query(undo);
  }
}

describe('GET /livez', () => {
  it('responds 200 while the process runs', async () => {
    const { status, body } = await api.send('GET', '/livez');
    expect([status, body]).toEqual([200, { status: 'ok' }]);
  });
});

describe('GET /readyz', () => {
  it('responds 200 when the server accepts requests', async () => {
    expect((await ready(200)).body).toEqual({ status: 'ok' });
    expect(await metric()).toBe('1');
  });

  thorough.it('responds 503 if the database lacks a migration', async () => {
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

  it('responds 503 if the migrations cannot be read', async () => {
    const detail = await refusal(
      'ALTER TABLE migrations RENAME TO forgotten',
      'ALTER TABLE forgotten RENAME TO migrations',
    );
    expect(detail).toBe('The database lacks migrations.');
    await ready(200);
  });

  it('responds 200 if a newer migration is compatible with this version, and 503 otherwise', async () => {
    await query(`INSERT INTO migrations (timestamp, name) VALUES (9999999999999, 'Future9999999999999')`);
    const detail = await refusal(
      `DELETE FROM compatible_migrations WHERE name = 'Future9999999999999'`,
      `INSERT INTO compatible_migrations (name) VALUES ('Future9999999999999')`,
    );
    expect(detail).toBe('The database is newer than this version.');
    expect((await ready(200)).body).toEqual({ status: 'ok' });
    await query(`DELETE FROM migrations WHERE name = 'Future9999999999999'`);
    await query(`DELETE FROM compatible_migrations WHERE name = 'Future9999999999999'`);
  });
});

it('GET /connections responds 503 with Retry-After if the database lacks a column that the route reads', async () => {
  const key = await api.key(await api.platform.user());
  await query('ALTER TABLE connections RENAME COLUMN met_at_event_id TO met_at');
  try {
    const { status, headers, body } = await api.get('/connections', key);
    expect([status, (body as { code: string }).code]).toEqual([503, 'temporarily_unavailable']);
    expect(headers['retry-after']).toBeDefined();
  } finally {
    await query('ALTER TABLE connections RENAME COLUMN met_at TO met_at_event_id');
  }
});
