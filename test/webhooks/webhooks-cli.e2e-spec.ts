import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { TestApi } from '../support/api.js';
import { pua, puaJson } from '../support/command-line.js';
import { eventually } from '../support/timing.js';
import { isVerified, Receiver } from '../support/receiver.js';
import type { DeliveryDetails, WebhookDetails } from '../../src/webhooks/webhooks.service.js';

type Created = WebhookDetails & { secret: string };

describe('pua webhooks', () => {
  let api: TestApi;
  let receiver: Receiver;

  beforeAll(async () => void (api = await TestApi.start()));
  afterAll(() => api.close());
  beforeEach(async () => void (receiver = await Receiver.start()));
  afterEach(() => receiver.close());

  const json = <T>(command: string) => puaJson<T>(api.environment, `webhooks ${command}`);
  const run = (command: string) => pua(api.environment, `webhooks ${command}`);
  const create = () => json<Created>(`create --url ${receiver.url} --types profile.updated --platform`);

  it('create prints only the secret, once, and explains on stderr how to test the webhook', async () => {
    const types = 'events.updated,events.removed';
    const { code, stdout, stderr } = await run(`create --url ${receiver.url} --types ${types} --platform`);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=\n$/)]);
    expect(stderr).toMatch(/`npx pua webhooks test wh_[0-9A-Za-z]{16}`\n$/);
    expect(stderr).not.toContain('whsec_');
    const { data } = await json<{ data: WebhookDetails[] }>('list');
    expect(data[0]).toMatchObject({
      status: 'active',
      url: receiver.url,
      types: ['events.updated', 'events.removed'],
      client_id: null,
      key_id: null,
    });
    const shown = await run(`show ${data[0]!.id}`);
    for (const { stdout: text } of [shown, await run('list')]) expect(text).not.toContain('whsec_');
  });

  it('test sends a signed message, and prints the response status or the connection error', async () => {
    const { id, secret } = await create();
    expect(await json(`test ${id}`)).toMatchObject({ id, taken: true, response_status: 204, error: null });
    const [received] = receiver.received;
    expect(JSON.parse(received!.body)).toEqual({
      type: 'webhook.test',
      timestamp: expect.any(String),
      data: {},
    });
    expect(isVerified(secret, received!)).toBe(true);
    receiver.respond = (_, response) => void response.writeHead(400).end();
    const failed = await run(`test ${id}`);
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringMatching(/^400 after 0\.\d{3} s\n$/)]);
    await receiver.close();
    expect((await run(`test ${id}`)).stderr).toContain('ECONNREFUSED');
    const { deliveries } = await json<{ deliveries: DeliveryDetails[] }>(`show ${id}`);
    expect(deliveries.map(({ status, response_status }) => [status, response_status])).toEqual([
      ['dead', null],
      ['dead', 400],
      ['delivered', 204],
    ]);
    expect((await json<WebhookDetails>(`show ${id}`)).failing_since).toBeNull();
    receiver = await Receiver.start();
  });

  it('show lists the latest messages with status and time; redeliver sends one message or all failed messages again', async () => {
    const { id } = await create();
    const member = await api.platform.user();
    await api.query(`UPDATE users SET bio = 'x' WHERE id = $1`, [member]);
    await receiver.untilReceived(1);
    const show = async (): Promise<DeliveryDetails[]> =>
      (await json<{ deliveries: DeliveryDetails[] }>(`show ${id}`)).deliveries;
    const last = await eventually(async () => (await show()).find(({ status }) => status !== 'pending'));
    expect(last).toEqual({
      id: receiver.received[0]!.id,
      type: 'profile.updated',
      member_id: member,
      status: 'delivered',
      attempts: 1,
      attempted_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
      response_status: 204,
      error: null,
      duration_ms: expect.any(Number),
      next_attempt_at: null,
      changed_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
    });
    expect((await run(`show ${id}`)).stdout).toContain(last!.id);
    expect(await json(`redeliver ${last!.id}`)).toEqual({ id: last!.id, redelivered: 1 });
    await receiver.untilReceived(2);
    expect(receiver.received[1]!.id).toBe(last!.id);
    await api.query(
      `UPDATE webhook_deliveries SET status = 'dead', ended_at = now() WHERE endpoint_id = $1`,
      [id],
    );
    expect(await json(`redeliver ${id}`)).toEqual({ id, redelivered: 1 });
    await receiver.untilReceived(3);
    await json(`disable ${id}`);
  });

  it('rotate prints only the new secret; test, rotate and redeliver fail after disable', async () => {
    const { id, secret } = await create();
    const { stdout } = await run(`rotate ${id} --overlap 0s`);
    const next = stdout.trim();
    expect(next).not.toBe(secret);
    await json(`test ${id}`);
    expect([secret, next].map((each) => isVerified(each, receiver.received[0]!))).toEqual([false, true]);
    expect(await json(`disable ${id}`)).toMatchObject({ id, changed: true });
    const again = await run(`disable ${id}`);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('was already disabled at')]);
    for (const command of ['test', 'rotate', 'redeliver']) {
      const { code, stderr } = await run(`${command} ${id}`);
      expect([code, stderr]).toEqual([1, expect.stringContaining(`The webhook ${id} was disabled`)]);
    }
  });

  it.each([
    ['create --types profile.updated --platform', 2, "required option '--url <url>'"],
    ['create --url URL --types= --platform', 2, 'There is no type ""'],
    ['create --url URL --types events.burned --platform', 2, 'There is no type "events.burned"'],
    ['create --url URL --types profile.removed --platform', 2, 'There is no type'],
    ['create --url URL --types events.updated', 2, 'name the owner of the endpoint'],
    ['create --url URL --types events.updated --platform --key x', 2, 'cannot be used with'],
    ['create --url URL --types events.updated --client x --key y', 2, 'cannot be used with'],
    ['create --url URL --types events.updated --key nobody', 1, 'There is no key nobody'],
    ["create --url URL --types events.updated --client ';DROP", 1, 'There is no client'],
    ['create --url ftp://a.example/ --types events.updated --platform', 1, 'must be absolute'],
    ['create --url https://u:p@a.example/ --types events.updated --platform', 1, 'without user'],
    ['create --url https://a.example/#x --types events.updated --platform', 1, 'fragment'],
    ['create --url http://a.example/ --types events.updated --platform', 1, 'must be https'],
    ['create --url https://10.0.0.1/ --types events.updated --platform', 1, 'on the internet'],
    ['create --url https://[fd00::1]/ --types events.updated --platform', 1, 'on the internet'],
    ['create --url https://0xa9fea9fe/ --types events.updated --platform', 1, 'on the internet'],
    ['rotate wh_nothing --overlap 31d', 2, 'from 0s to 30d'],
    ['rotate wh_nothing', 1, 'There is no webhook wh_nothing'],
    [`redeliver msg_${'0'.repeat(32)}`, 1, 'There is no message'],
    ['redeliver msg_x', 1, 'There is no webhook msg_x'],
    ['test wh_nothing', 1, 'There is no webhook wh_nothing'],
    ['disable wh_nothing', 1, 'There is no webhook wh_nothing'],
  ])('rejects %s', async (command, code, why) => {
    const ended = await run(command.replace('URL', receiver.url));
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(why)]);
    expect(ended.stdout).not.toContain('whsec_');
  });

  it('rejects a key without the scope, and a platform key with --key', async () => {
    const keyId = (await api.key(await api.platform.user(), ['events:read'])).split('_')[2]!;
    const withKey = (id: string, types: string) =>
      run(`create --url ${receiver.url} --types ${types} --key ${id}`);
    expect((await withKey(keyId, 'events.updated,profile.updated')).stderr).toContain('profile:read');
    expect((await withKey(keyId, 'events.updated')).code).toBe(0);
    const platformKey = (await api.platformKey()).split('_')[2]!;
    expect((await withKey(platformKey, 'events.updated')).stderr).toContain('use --platform');
  });

  it('rejects http and loopback URLs in production', async () => {
    const production = { ...api.environment, NODE_ENV: 'production', PUBLIC_URL: 'https://api.example' };
    for (const url of [receiver.url, 'https://127.0.0.1/', 'https://[::1]/']) {
      const { code, stderr } = await pua(
        { ...production, DATABASE_URL: api.environment.DATABASE_URL ?? 'postgres://127.0.0.1:1/none' },
        `webhooks create --url ${url} --types profile.updated --platform`,
      );
      expect([url, code]).toEqual([url, 1]);
      if (api.environment.DATABASE_URL) expect(stderr).toMatch(/must be https|on the internet/);
    }
  });

  it('doctor names an endpoint that has been failing for 25 hours', async () => {
    const { id } = await create();
    const status = async () => {
      const { checks } = await puaJson<{ checks: { name: string; status: string; message: string }[] }>(
        api.environment,
        'doctor',
      );
      return checks.find(({ name }) => name === 'webhooks')!;
    };
    expect((await status()).status).toBe('ok');
    await api.query(
      `UPDATE webhook_endpoints SET failing_since = now() - interval '25 hours' WHERE id = $1`,
      [id],
    );
    expect(await status()).toMatchObject({ status: 'warn', message: expect.stringContaining(id) });
    await json(`disable ${id}`);
    expect((await status()).status).toBe('ok');
  });
});
