import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createServer } from 'node:net';
import { TestApi } from './support/api.js';

const freePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });

describe('metrics', () => {
  let api: TestApi;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    api = await TestApi.start({ metricsPort: port });
  });
  afterAll(() => api.close());

  it('are served on a port of their own, by route and status, without anything that a caller sent', async () => {
    const key = await api.key(await api.platform.user());
    await api.get('/events/424242', key);
    await api.get('/me', 'pua_live_nonsense');
    await api.send('GET', '/api/public/made-up-by-a-caller');
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text).toContain(
      'http_request_duration_seconds_count{method="GET",route="/api/public/events/:id",status="404"} 1',
    );
    expect(text).toContain('http_problems_total{code="invalid_credentials"} 1');
    expect(text).toMatch(/^database_pool_connections\{state="idle"\} \d+$/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
    expect(text).toMatch(/^build_info\{version="\d+\.\d+\.\d+",node="v\d+\.[\d.]+"\} 1$/m);
    expect(text).toMatch(/^http_requests_under_way 0$/m);
    for (const sent of ['424242', 'made-up', key, 'nonsense', key.split('_')[2]!])
      expect(text).not.toContain(sent);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    expect((await api.send('GET', '/metrics')).status).toBe(404);
  });
});
