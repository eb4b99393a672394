import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestApi } from './support/api.js';

describe('GET /api/public/profile', () => {
  let api: TestApi;
  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());

  it('answers the eight documented fields', async () => {
    const user = await api.platform.user({
      username: 'ada',
      first_name: 'Ada',
      created_at: '2020-02-03T04:05:06.789Z',
    });
    const { status, body } = await api.get('/profile', await api.key(user));
    expect(status).toBe(200);
    expect(body).toEqual({
      id: user,
      username: 'ada',
      display_name: 'Ada',
      bio: null,
      profile_picture: null,
      created_at: '2020-02-03 04:05:06',
      achievements_count: 0,
      connections_count: 0,
    });
  });
});
