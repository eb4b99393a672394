import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { OauthTest, PASSWORD, REDIRECT_URI, type Browser, type FormPage } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { eventually } from '../support/timing.js';

describe('/developer/clients/:client, of an app that has receivers', () => {
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

  async function developer() {
    const { id, username } = await oauth.member();
    const browser = oauth.browser();
    const signIn = (await browser.open('/developer')) as FormPage;
    await browser.submit(signIn, { username, password: PASSWORD });
    return { id, browser };
  }

  async function register(browser: Browser): Promise<string> {
    const form = (await browser.open('/developer/new-client')) as FormPage;
    const fields = { name: 'Own app', type: 'web', redirect_uris: REDIRECT_URI, scopes: ['profile:read'] };
    const { url } = (await browser.submit(form, fields, /^\/developer\/clients$/)) as FormPage;
    return url.pathname.split('/').at(-1)!;
  }

  /** An app whose receiver was told of a member; the page that shows it. */
  async function told() {
    const ada = await developer();
    const clientId = await register(ada.browser);
    const url = `${receiver.url}?key=of-the-receiver`;
    const { id, secret } = await webhooks.create({
      url,
      types: ['profile.updated'],
      clientId,
      actor: 'admin',
    });
    const member = await oauth.member();
    await oauth.tokens(clientId, member.username, { scope: 'profile:read' });
    const before = receiver.received.length;
    await oauth.dataSource.query(`UPDATE users SET bio = 'x' WHERE id = $1`, [member.id]);
    await receiver.untilReceived(before + 1);
    await eventually(async () => (await webhooks.deliveries(id))[0]?.status === 'delivered' || undefined);
    const open = async () => (await ada.browser.open(`/developer/clients/${clientId}`)) as FormPage;
    return { ada, clientId, id, secret, member, message: receiver.received[before]!.id, open, before };
  }

  it('lists the last messages of each, without secrets, and without the member that they are about', async () => {
    const { id, secret, member, message, open } = await told();
    const { html } = await open();
    expect(html).toContain(`<code>${new URL(receiver.url).href}</code>`);
    const row = new RegExp(`<tr>(?:(?!</tr>)[^])*${message}[^]*?</tr>`).exec(html)![0];
    expect(row).toMatch(/profile\.updated[^]*Delivered[^]*>1<[^]*>204<[^]*>\d+ ms</);
    for (const hidden of [secret, 'of-the-receiver', id, `>${member.id}<`, member.username])
      expect([hidden, html.includes(hidden)]).toEqual([hidden, false]);
    expect((await webhooks.deliveries(id))[0]!.duration_ms).toBeLessThan(10_000);
  });

  it('sends one again after a question, with the same id; the audit trail says who did', async () => {
    const { ada, clientId, id, message, open, before } = await told();
    const page = (await ada.browser.submit(await open(), {}, /\/redeliver$/)) as FormPage;
    expect([page.url.pathname, page.html]).toEqual([
      `/developer/clients/${clientId}`,
      expect.stringContaining('The message is on its way again.'),
    ]);
    await receiver.untilReceived(before + 2);
    expect(receiver.received[before + 1]!.id).toBe(message);
    const trail = `SELECT actor, user_id, client_id, details FROM auth_events WHERE type = 'webhook.redelivered' AND client_id = $1`;
    expect(await oauth.dataSource.query(trail, [clientId])).toEqual([
      { actor: 'user', user_id: ada.id, client_id: clientId, details: { webhook: id, messages: 1 } },
    ]);
  });

  it('neither shows nor sends those of another developer’s app, and takes no form of another site', async () => {
    const { clientId, message, id } = await told();
    const eve = await developer();
    const own = await register(eve.browser);
    const csrf = /name="csrf" value="([^"]+)"/.exec(
      ((await eve.browser.open('/developer')) as FormPage).html,
    )![1]!;
    const send = async (path: string, token = csrf) => {
      const body = new URLSearchParams({ csrf: token });
      return (await eve.browser.send(path, { method: 'POST', body })).status;
    };
    expect(((await eve.browser.open(`/developer/clients/${own}`)) as FormPage).html).not.toContain(message);
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

  it('sends nothing to a receiver that is disabled, and bounds how often a developer does it', async () => {
    const { ada, clientId, id, message, open, before } = await told();
    const page = await open();
    await oauth.dataSource.query(
      `INSERT INTO auth_events (type, actor, user_id, details) SELECT 'webhook.redelivered', 'user', $1, '{}' FROM generate_series(1, 100)`,
      [ada.id],
    );
    const bounded = (await ada.browser.submit(page, {}, /\/redeliver$/)) as FormPage;
    expect([bounded.status, bounded.html]).toEqual([429, expect.stringContaining('Too many changes')]);
    await webhooks.disable(id, 'admin');
    const late = (await ada.browser.submit(page, {}, /\/redeliver$/)) as FormPage;
    expect(late.html).toContain('The message was not sent again');
    expect((await open()).html).not.toContain(`/developer/clients/${clientId}/messages/${message}`);
    expect(receiver.received).toHaveLength(before + 1);
  });
});
