import { expect, it } from '@jest/globals';
import type { EntityManager } from 'typeorm';
import { StagedRows, Staging } from './staging.js';

it('a chunk that the database rejects makes the next flush fail, without an unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const refusing = { query: () => Promise.reject(new Error('refused')) } as unknown as EntityManager;
  const rows = new StagedRows(new Staging(refusing), 'staged', 'text text');
  try {
    await rows.add({ text: 'x'.repeat(500_000) });
    await new Promise((resolve) => setImmediate(resolve)); // an unhandled rejection would have ended the process by now
    expect(unhandled).toEqual([]);
    await expect(rows.flush()).rejects.toThrow('refused');
  } finally {
    process.off('unhandledRejection', note);
  }
});
