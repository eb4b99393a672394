import { describe, expect, it } from '@jest/globals';
import { withDetails } from './output.js';

describe('a secret that is shown only once', () => {
  const secret = { id: 'a', key: 'pua_test_a' };

  it('is printed with the details of its credential', async () => {
    const details = Promise.resolve({ id: 'a', name: 'Calendar' });
    expect(await withDetails(details, secret)).toEqual({ id: 'a', name: 'Calendar', key: 'pua_test_a' });
  });

  it('is printed even if the details of its credential can no longer be read', async () => {
    expect(await withDetails(Promise.reject(new Error('the database is away')), secret)).toEqual(secret);
  });
});
