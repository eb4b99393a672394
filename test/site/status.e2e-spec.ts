import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { StatusHistory, type Status } from '../../src/operations/status/status-history.js';
import { TestApi } from '../support/api.js';
import { pua, puaJson } from '../support/command-line.js';
import { postgres } from '../support/database.js';
import { eventually } from '../support/timing.js';
import { TcpProxy } from '../support/tcp-proxy.js';

let api: TestApi;
beforeAll(async () => void (api = await TestApi.start()));
afterAll(() => api.close());

const history = (of = api) => of.app.get(StatusHistory);
const fetched = async (path: string, of = api) => fetch((await of.app.getUrl()) + path);
const hour = (latencies: readonly (number | null)[], ago: string) =>
  api.dataSource.query(
    `INSERT INTO status_hours (hour, latencies) VALUES (date_trunc('hour', now(), 'UTC') - $2::interval, $1)`,
    [[...latencies, ...Array<null>(60 - latencies.length).fill(null)], ago],
  );
const minutesOf = async () => {
  const [row] = await api.dataSource.query<{ minutes: number; failed: number }[]>(
    'SELECT count(ms)::integer AS minutes, (count(*) FILTER (WHERE ms = -1))::integer AS failed FROM status_hours, unnest(latencies) ms',
  );
  return row!;
};

describe('/status', () => {
  it('says that all works, with 90 days of which none was measured yet', async () => {
    const status = await history().read();
    expect(status).toMatchObject({ status: 'operational', availability: null, incidents: [] });
    expect(status.days).toHaveLength(90);
    expect(status.days.at(-1)).toMatchObject({ date: new Date().toISOString().slice(0, 10), minutes: 0 });
    expect(await (await fetched('/status')).text()).toContain('Nothing has been measured yet');
  });

  it('records one probe a minute, whichever instance is the first', async () => {
    const other = await TestApi.start({}, api);
    try {
      await Promise.all([history().probe(), history(other).probe(), history().probe()]);
      const { minutes, failed } = await minutesOf();
      expect([1, 2]).toContain(minutes); // a minute may have begun in between
      expect(failed).toBe(0);
    } finally {
      await other.close();
    }
  });

  it('tells of each day how many minutes failed, and the median and 95th percentile of the others', async () => {
    await hour([-1, ...Array.from({ length: 20 }, (_, i) => i + 1)], '2 days');
    await hour([-1, -1], '3 days');
    await hour(Array<number>(60).fill(7), '91 days');
    const fresh = await TestApi.start({}, api);
    const { availability, days } = await history(fresh).read();
    await fresh.close();
    const [three, two] = days.slice(-4, -2);
    expect(three).toMatchObject({
      minutes: 2,
      failed_minutes: 2,
      availability: 0,
      p50_ms: null,
      p95_ms: null,
    });
    expect(two).toMatchObject({
      minutes: 21,
      failed_minutes: 1,
      availability: 95.23,
      p50_ms: 10,
      p95_ms: 19,
    });
    expect(availability).toBeLessThan(100);
    expect(days.reduce((sum, { minutes }) => sum + minutes, 0)).toBe((await minutesOf()).minutes - 60);
  });

  it('is a page with the figures also as text, and JSON for all origins; both may be kept for a minute', async () => {
    const page = await eventually(async () => {
      const response = await fetched('/status');
      const html = await response.text();
      return html.includes('<summary>Figures') ? { response, html } : undefined;
    });
    expect(page.response.headers.get('Cache-Control')).toBe('public, max-age=60');
    expect(page.html).toMatch(
      /<th scope="row">\d{4}-\d\d-\d\d<\/th><td>95\.23 %<\/td><td>21<\/td><td>10 ms<\/td><td>19 ms<\/td>/,
    );
    expect(page.html).toMatch(
      /<svg class="days"[^>]* role="img" aria-label="Availability of each of the last 90 days/,
    );
    const response = await fetched('/status.json');
    expect(response.headers.get('Access-Control-Allow-Origin')).toBe('*');
    expect(response.headers.get('Cache-Control')).toBe('public, max-age=60');
    const status = (await response.json()) as Status;
    expect(Object.keys(status)).toEqual([
      'status',
      'checked_at',
      'known_at',
      'days',
      'incidents',
      'availability',
    ]);
    expect(Object.keys(status.days[0]!).toSorted()).toEqual(
      ['availability', 'date', 'failed_minutes', 'minutes', 'p50_ms', 'p95_ms'].toSorted(),
    );
  });

  it('is where the front page and the foot of every public page lead', async () => {
    for (const path of ['/', '/docs', '/docs/times', '/status'])
      expect(await (await fetched(path)).text()).toMatch(/<footer><a href="\/status">Status<\/a>/);
  });

  it('shows what an operator posts, with all updates, until it is resolved, and what a name may not do', async () => {
    const environment = api.environment;
    const title = 'Sign-in <b>fails</b>';
    const { id } = await puaJson<{ id: number }>(environment, [
      'status',
      'post',
      '--title',
      title,
      '--state',
      'investigating',
      '--body',
      'We look into it.',
    ]);
    expect(await history().read()).toMatchObject({
      status: 'incident',
      incidents: [{ id, title, state: 'investigating' }],
    });
    await puaJson(environment, [
      'status',
      'update',
      String(id),
      '--state',
      'resolved',
      '--body',
      'A certificate had expired.',
    ]);
    expect(await history().read()).toMatchObject({
      status: 'operational',
      incidents: [
        {
          id,
          state: 'resolved',
          updates: [
            { state: 'investigating', body: 'We look into it.' },
            { state: 'resolved', body: 'A certificate had expired.' },
          ],
        },
      ],
    });
    const html = await eventually(async () => {
      const text = await (await fetched('/status')).text();
      return text.includes('A certificate had expired.') ? text : undefined;
    });
    expect(html).toContain('Sign-in &lt;b&gt;fails&lt;/b&gt;');
    expect(await puaJson(environment, ['status', 'list'])).toMatchObject({
      data: [{ id, state: 'resolved' }],
    });
    const { data } = await puaJson<{ data: object[] }>(environment, ['audit', '--type', 'incident']);
    expect(data).toMatchObject([
      { type: 'incident.updated', details: { incident: id, state: 'resolved' } },
      { type: 'incident.posted', details: { incident: id, state: 'investigating' } },
    ]);
  });

  it('refuses to update an incident that there is not, and a state that there is not', async () => {
    expect(await pua(api.environment, ['status', 'update', '999', '--state', 'resolved'])).toMatchObject({
      code: 1,
      stderr: 'There is no incident 999: `npx pua status list` shows all\n',
    });
    expect((await pua(api.environment, ['status', 'post', '--title', 'x', '--state', 'fine'])).code).toBe(2);
  });
});

postgres.describe('/status while the database is away', () => {
  it('says so, with what was known before, and records the failed minutes once it is back', async () => {
    const proxy = await TcpProxy.start(api.environment.DATABASE_URL!);
    const other = await TestApi.start({ databaseUrl: proxy.url }, api);
    try {
      const before = await history(other).read();
      expect(before.status).toBe('operational');
      await api.dataSource.query('DELETE FROM status_hours');
      proxy.cut();
      await history(other).probe();
      const away = await history(other).read();
      expect(away).toMatchObject({ status: 'unavailable', known_at: before.known_at, days: before.days });
      expect(away.checked_at >= before.checked_at).toBe(true);
      const response = await eventually(async () => {
        const page = await fetched('/status', other);
        const html = await page.text();
        return html.includes('cannot be read now') ? { page, html } : undefined;
      });
      expect(response.page.status).toBe(200);
      expect(response.html).not.toMatch(/ECONNREFUSED|postgres|127\.0\.0\.1/);
      expect(await minutesOf()).toEqual({ minutes: 0, failed: 0 });
      proxy.mend();
      await eventually(async () => {
        await history(other).probe();
        return (await minutesOf()).failed > 0 || undefined;
      });
      expect((await minutesOf()).failed).toBeGreaterThanOrEqual(1);
    } finally {
      await other.close();
      await proxy.close();
    }
  });
});
