import { describe, expect, it } from '@jest/globals';
import { withDetails } from './output.js';

describe('a secret that is shown only once', () => {
  const secret = { id: 'a', key: 'pua_test_a' };

  it('comes with the details of what it was made for', async () => {
    const details = Promise.resolve({ id: 'a', name: 'Calendar' });
    expect(await withDetails(details, secret)).toEqual({ id: 'a', name: 'Calendar', key: 'pua_test_a' });
  });

  it('is shown also where these cannot be read any more', async () => {
    expect(await withDetails(Promise.reject(new Error('the database is away')), secret)).toEqual(secret);
  });
});
