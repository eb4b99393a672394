import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { newFormId } from '../../src/member-pages/rendering/pages.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { atOnce } from '../support/concurrent.js';
import { csrfOf, OauthTest, PASSWORD, REDIRECT_URI, type FormPage } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';

let oauth: OauthTest;
let receiver: Receiver;
let webhooks: WebhooksService;
beforeAll(async () => {
  oauth = await OauthTest.start({ developerConsole: true });
  receiver = await Receiver.start();
  webhooks = new WebhooksService(oauth.dataSource, oauth.api.config);
});
afterAll(async () => {
  await receiver.close();
  await oauth.close();
});

/** A developer, signed in, with an app. */
async function developer() {
  const { id, username } = await oauth.member();
  const browser = oauth.browser();
  await browser.submit(await browser.view('/developer'), { username, password: PASSWORD });
  const submit = async (path: string, fields: Record<string, string | string[]>, action: RegExp) =>
    await browser.press(await browser.view(path), fields, action);
  const fields = { name: 'Own app', type: 'web', redirect_uris: REDIRECT_URI, scopes: ['profile:read'] };
  const { url } = await submit('/developer/new-client', fields, /^\/developer\/clients$/);
  return { id, browser, submit, app: url.pathname.split('/').at(-1)! };
}

describe('/developer/clients/:client, of an app with webhook endpoints', () => {
  /** An app whose endpoint received a message about a member, and the page that shows the message. */
  async function told() {
    const ada = await developer();
    const { app: clientId } = ada;
    const url = `${receiver.url}?key=of-the-receiver`;
    const types = ['profile.updated'];
    const { id, secret } = await webhooks.create({ url, types, clientId, actor: 'admin' });
    const member = await oauth.member();
    await oauth.tokens(clientId, member.username, { scope: 'profile:read' });
    const before = receiver.received.length;
    await oauth.query(`UPDATE users SET bio = 'x' WHERE id = $1`, [member.id]);
    await receiver.untilReceived(before + 1);
    await eventually(async () => (await webhooks.deliveries(id))[0]?.status === 'delivered' || undefined);
    const open = async () => await ada.browser.view(`/developer/clients/${clientId}`);
    return { ada, clientId, id, secret, member, message: receiver.received[before]!.id, open, before };
  }

  it('lists the latest message of an endpoint, without secrets or members', async () => {
    const { id, secret, member, message, open } = await told();
    const { html } = await open();
    expect(html).toContain(`<code>${new URL(receiver.url).href}</code>`);
    const row = new RegExp(`<tr>(?:(?!</tr>)[^])*${message}[^]*?</tr>`).exec(html)![0];
    expect(row).toMatch(/profile\.updated[^]*Delivered[^]*>1<[^]*>204<[^]*>\d+ ms</);
    for (const hidden of [secret, 'of-the-receiver', id, `>${member.id}<`, member.username])
      expect([hidden, html.includes(hidden)]).toEqual([hidden, false]);
    expect((await webhooks.deliveries(id))[0]!.duration_ms).toBeLessThan(10_000);
  });

  it('sends a delivered message again once per form, with the same id, and the audit log names the developer', async () => {
    const { ada, clientId, id, message, open, before } = await told();
    const form = await open();
    const send = () => ada.browser.submit(form, {}, /\/redeliver$/) as Promise<FormPage>;
    const pages = await atOnce(2, send);
    await receiver.untilReceived(before + 2);
    await eventually(async () => (await webhooks.deliveries(id))[0]?.status === 'delivered' || undefined);
    for (const page of [...pages, await send()])
      expect([page.url.pathname, page.html]).toEqual([
        `/developer/clients/${clientId}`,
        expect.stringContaining('The server is sending the message again.'),
      ]);
    expect((await webhooks.deliveries(id))[0]!.status).toBe('delivered');
    expect(receiver.received[before + 1]!.id).toBe(message);
    const trail = `SELECT actor, user_id, client_id, details FROM auth_events WHERE type = 'webhook.redelivered' AND client_id = $1`;
    expect(await oauth.query(trail, [clientId])).toEqual([
      { actor: 'user', user_id: ada.id, client_id: clientId, details: { webhook: id, messages: 1 } },
    ]);
  });

  it('neither shows nor sends messages of another developer’s app, and rejects forms with a wrong CSRF token', async () => {
    const { clientId, message, id } = await told();
    const eve = await developer();
    const { app: own } = eve;
    const csrf = csrfOf(await eve.browser.view('/developer'));
    const send = async (path: string, token = csrf) => {
      const body = new URLSearchParams({ csrf: token, form: newFormId() });
      return (await eve.browser.send(path, { method: 'POST', body })).status;
    };
    expect((await eve.browser.view(`/developer/clients/${own}`)).html).not.toContain(message);
    for (const client of [clientId, own])
      for (const one of [message, id, `msg_${'0'.repeat(32)}`])
        expect([client, one, await send(`/developer/clients/${client}/messages/${one}/redeliver`)]).toEqual([
          client,
          one,
          404,
        ]);
    expect(await send(`/developer/clients/${own}/messages/${message}/redeliver`, 'forged')).toBe(403);
    expect((await webhooks.deliveries(id))[0]).toMatchObject({ status: 'delivered', attempts: 1 });
  });

  it('sends nothing to a disabled endpoint, and limits a developer’s redeliveries', async () => {
    const { ada, clientId, id, message, open, before } = await told();
    const page = await open();
    await oauth.query(
      `INSERT INTO auth_events (type, actor, user_id, details) SELECT 'webhook.redelivered', 'user', $1, '{}' FROM generate_series(1, 100)`,
      [ada.id],
    );
    const bounded = await ada.browser.press(page, {}, /\/redeliver$/);
    expect([bounded.status, bounded.html]).toEqual([429, expect.stringContaining('Too many changes')]);
    await webhooks.disable(id, 'admin');
    const late = await ada.browser.press(page, {}, /\/redeliver$/);
    expect(late.html).toContain('The message was not sent again');
    expect((await open()).html).not.toContain(`/developer/clients/${clientId}/messages/${message}`);
    expect(receiver.received).toHaveLength(before + 1);
  });
});

describe('/developer/webhooks/:app', () => {
  /** A developer with an app and a key. */
  async function withKey() {
    const { submit, ...made } = await developer();
    const { browser, app } = made;
    const fields = { name: 'Own key', scopes: ['events:read'], days: '7' };
    const { html } = await submit('/developer/new-key', fields, /^\/developer\/keys$/);
    const key = /pua_test_([0-9A-Za-z]{12})_/.exec(html)![1]!;
    const page = async (of = app) => await browser.view(`/developer/webhooks/${of}`);
    const create = (fields: Record<string, string | string[]> = {}, of = app) =>
      submit(
        `/developer/webhooks/${of}`,
        { url: receiver.url, types: [of === app ? 'profile.updated' : 'events.removed'], ...fields },
        new RegExp(`/webhooks/${of}$`),
      );
    const form = async (action: RegExp, from?: FormPage) =>
      await browser.press(from ?? (await page()), {}, action);
    return { ...made, key, page, create, form };
  }
  const secretIn = ({ html }: FormPage) => /<code>(whsec_[^<]+)<\/code>/.exec(html)?.[1];
  const idIn = ({ html }: FormPage) => /<code>(wh_\w+)<\/code>/.exec(html)?.[1];
  const endpoints = (app: string) =>
    oauth.query<{ id: string; disabled_at: Date | null }>(
      'SELECT id, disabled_at FROM webhook_endpoints WHERE client_id = $1 OR key_id = $1',
      [app],
    );

  it('creates webhooks of an app and of a key, shows each secret once, and sends one test message per form', async () => {
    const ada = await withKey();
    for (const [of, type] of [
      [ada.app, 'profile.updated'],
      [ada.key, 'events.removed'],
    ] as const) {
      const made = await ada.create({}, of);
      expect(secretIn(made)).toMatch(/^whsec_/);
      expect(secretIn(await ada.browser.view(made.url.pathname + made.url.search))).toBeUndefined();
      const page = await ada.page(of);
      expect(page.html).toContain(`<code>${type}</code>`);
      expect(page.html).toContain(new URL(receiver.url).href);
      const before = receiver.received.length;
      expect((await ada.form(/\/test$/, page)).html).toContain('A test message is on its way.');
      await receiver.untilReceived(before + 1);
      await ada.form(/\/test$/, page); // the same form again
      const tests = `SELECT count(*)::int AS count FROM webhook_deliveries WHERE endpoint_id = $1`;
      expect(await oauth.query(tests, [idIn(page)])).toEqual([{ count: 1 }]);
    }
  });

  it('creates, rotates, disables and deletes a webhook once for a form that is sent twice', async () => {
    const ada = await withKey();
    const form = await ada.page();
    const send = async () =>
      await ada.browser.press(
        form,
        { url: receiver.url, types: ['profile.updated'] },
        new RegExp(`/webhooks/${ada.app}$`),
      );
    const [first, second] = [await send(), await send()];
    expect(secretIn(first)).toBeDefined();
    expect([second.status, second.url.pathname]).toEqual([200, `/developer/webhooks/${ada.app}`]);
    expect(await endpoints(ada.app)).toHaveLength(1);

    const page = await ada.page();
    expect(secretIn(await ada.form(/\/rotate$/, page))).not.toBe(secretIn(first));
    await ada.form(/\/rotate$/, page);
    expect((await ada.page()).html).toContain('The previous secret also signs until');
    for (let i = 0; i < 2; i++)
      expect((await ada.form(/\/disable$/, page)).html).toContain('The webhook is disabled.');
    const disabled = await ada.page();
    expect(disabled.html).not.toMatch(/\/(test|rotate|disable)"/);
    for (let i = 0; i < 2; i++)
      expect((await ada.form(/\/delete$/, disabled)).html).toContain('The webhook is deleted.');
    expect(await endpoints(ada.app)).toEqual([]);
    const trail = `SELECT type FROM auth_events WHERE type LIKE 'webhook.%' AND user_id = $1 AND client_id = $2
AND actor = 'user' AND ip IS NOT NULL ORDER BY id`;
    expect(await oauth.query(trail, [ada.id, ada.app])).toEqual(
      ['created', 'rotated', 'disabled', 'deleted'].map((act) => ({ type: `webhook.${act}` })),
    );
  });

  it('rejects five invalid URLs, three invalid lists of types, and a sixth webhook', async () => {
    const ada = await withKey();
    for (const url of ['http://app.example/', 'https://10.0.0.1/', 'https://a:b@app.example/', 'x', '']) {
      const page = await ada.create({ url });
      expect([url, page.status, page.html]).toEqual([
        url,
        400,
        expect.stringContaining('This URL is not allowed.'),
      ]);
    }
    for (const types of [[], ['events.updated'], ['webhook.test']]) {
      const page = await ada.create({ types });
      expect([page.status, page.html]).toEqual([400, expect.stringContaining('at least one message type')]);
    }
    expect(await endpoints(ada.app)).toEqual([]);
    const form = await ada.page();
    for (let i = 0; i < 5; i++) await ada.create();
    const full = await ada.browser.press(
      form,
      { url: receiver.url, types: ['profile.updated'] },
      new RegExp(`/webhooks/${ada.app}$`),
    );
    expect([full.status, full.html]).toEqual([409, expect.stringContaining('You can have 5 webhooks')]);
    expect(await endpoints(ada.app)).toHaveLength(5);
  });

  it('keeps webhooks from other developers, requires a recent sign-in for a secret, and limits changes', async () => {
    const [ada, eve] = [await withKey(), await withKey()];
    await ada.create();
    const webhook = idIn(await ada.page())!;
    const csrf = csrfOf(await eve.page());
    for (const app of [ada.app, ada.key, eve.app, 'none'])
      for (const act of ['rotate', 'test', 'disable', 'delete']) {
        const body = new URLSearchParams({ csrf, form: newFormId() });
        const path = `/developer/webhooks/${app}/${webhook}/${act}`;
        const { status } = await eve.browser.send(path, { method: 'POST', body });
        // A developer's own list is unchanged after the deletion of an unknown webhook.
        expect([path, status]).toEqual([path, app === eve.app && act === 'delete' ? 303 : 404]);
      }
    expect((await eve.page(ada.app)).status).toBe(404);
    expect(await endpoints(ada.app)).toEqual([{ id: webhook, disabled_at: null }]);

    await oauth.query(
      `INSERT INTO auth_events (type, actor, user_id, details) SELECT 'webhook.tested', 'user', $1, '{}' FROM generate_series(1, 100)`,
      [ada.id],
    );
    for (const act of [/\/test$/, /\/rotate$/]) expect((await ada.form(act)).status).toBe(429);
    expect((await ada.create()).status).toBe(429);
    await oauth.ageSignIns(ada.id, 301);
    expect((await ada.form(/\/rotate$/)).url.pathname).toBe('/developer/confirm');
    expect((await ada.create()).url.pathname).toBe('/developer/confirm');
  });
});
