import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { WebhookSender } from '../../src/webhooks/webhook-sender.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { TestApi } from '../support/api.js';
import { PROCESS } from '../support/command-line.js';
import { freePort } from '../support/oauth.js';
import { eventually } from '../support/timing.js';

const PROGRAM = 'examples/webhooks/receiver.mjs';

let api: TestApi;
beforeAll(async () => void (api = await TestApi.start()));
afterAll(() => api.close());

it('examples/webhooks accepts a signed message, prints a repeated message once, and rejects an unsigned message', async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const webhooks = new WebhooksService(api.dataSource, api.config);
  const { id, secret } = await webhooks.create({ url, types: ['profile.updated'], actor: 'admin' });
  const child = spawn(process.execPath, [PROGRAM], {
    env: { ...PROCESS, WEBHOOK_SECRET: secret, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 100_000, // ends the wait for a missing line
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    expect((await lines.next()).value).toBe(`listening on ${port}`);
    expect(await webhooks.test(id, api.app.get(WebhookSender))).toMatchObject({ taken: true, status: 204 });
    expect((await lines.next()).value).toBe('webhook.test {}');
    const forged = await fetch(url, { method: 'POST', body: '{"type":"webhook.test","data":{}}' });
    expect(forged.status).toBe(401);
    await api.query(`UPDATE users SET bio = 'x' WHERE id = $1`, [await api.platform.user()]);
    expect((await lines.next()).value).toContain('profile.updated');
    const delivered = () =>
      eventually(async () =>
        (await webhooks.deliveries(id)).find(
          ({ status, type }) => status === 'delivered' && type === 'profile.updated',
        ),
      );
    expect(await webhooks.redeliver((await delivered()).id, 'admin')).toBe(1); // the same message again
    await delivered();
    await webhooks.test(id, api.app.get(WebhookSender));
    expect((await lines.next()).value).toBe('webhook.test {}'); // no line in between
  } finally {
    child.kill();
    await once(child, 'close');
  }
});

it('docs/developers/webhooks.md shows the program of examples/webhooks', () => {
  const program = readFileSync(PROGRAM, 'utf8');
  expect(readFileSync('docs/developers/webhooks.md', 'utf8')).toContain(
    program.slice(program.indexOf('import {')),
  );
});
