import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { rowsWith } from '../support/audit.js';
import { pua, puaJson } from '../support/command-line.js';
import { importFiles } from '../support/import-files.js';
import { OauthTest, PASSWORD } from '../support/oauth.js';

let count = 0;

let oauth: OauthTest;
beforeAll(async () => void (oauth = await OauthTest.start()));
afterAll(() => oauth.close());

const query = <Row>(sql: string, values: unknown[] = []) => oauth.api.query<Row>(sql, values);

const holding = (text: string) => rowsWith(oauth.dataSource, text);

/** @returns `mark`: a text that all data of this member contains */
async function member() {
  const mark = `Zyxwvut${++count}q`;
  const { id, username } = await oauth.member();
  const { platform, dataSource } = oauth.api;
  await dataSource.query(
    `UPDATE users SET username = $2, first_name = $3, last_name = $3, stored_display_name = $3, bio = $3, profile_picture = $4, external_id = $3, email = $3 || '@example.com' WHERE id = $1`,
    [id, `${mark}${username}`, mark, `https://example.com/${mark}`],
  );
  await platform.passkey(id, mark);
  const friend = await platform.user();
  await platform.connection(id, friend);
  const event = await platform.event({ organizer_id: id });
  await platform.participant(event, id, { role: 'organizer' });
  await platform.participant(await platform.event(), id);
  await platform.progress(id, await platform.achievement(), { earned_at: '2024-01-01T10:00:00Z' });
  return { id, username: `${mark}${username}`, mark, friend, event };
}

describe('pua users erase', () => {
  it('requires --yes, and otherwise only prints the numbers of the member’s records', async () => {
    const { id, username } = await member();
    const { code, stdout, stderr } = await pua(oauth.api.environment, ['users', 'erase', username]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/--yes is missing.*1 connections, the RSVPs to 2 events, 1 achievements/s);
    expect(await query('SELECT erased_at FROM users WHERE id = $1', [id])).toEqual([{ erased_at: null }]);
  });

  it('leaves none of the member’s texts in a row or audit event, and ends access by apps, keys and browsers', async () => {
    const { id, username, mark, friend, event } = await member();
    const client = await oauth.client();
    const tokens = await oauth.tokens(client, username);
    const key = await puaJson<{ key: string }>(
      oauth.api.environment,
      `keys create --user ${id} --name ${mark}’s --scopes profile:read`.split(' '),
    );
    const browser = oauth.browser();
    await browser.submit(await browser.view('/account/apps'), { username, password: PASSWORD });
    expect(await holding(mark)).not.toEqual([]);

    expect(await puaJson(oauth.api.environment, ['users', 'erase', String(id), '--yes'])).toEqual({
      id,
      erased: { connections: 1, participations: 2, achievements: 1, api_keys: 1 },
    });

    expect(await holding(mark)).toEqual([]);
    const trail = await query('SELECT DISTINCT ip, details FROM auth_events WHERE user_id = $1', [id]);
    expect(trail).toEqual([{ ip: null, details: {} }]);
    const ofOauth = ['oauth_grants', 'oauth_sessions', 'oauth_consents', 'oauth_state'];
    for (const table of [...ofOauth, 'api_keys', 'passkeys'])
      expect([table, await query(`SELECT FROM ${table} WHERE user_id = $1`, [id])]).toEqual([table, []]);
    expect(await oauth.me(tokens.access_token)).toBe(401);
    expect((await oauth.refresh(client, tokens.refresh_token)).status).toBe(400);
    expect((await oauth.api.get('/me', key.key)).status).toBe(401);
    expect((await browser.view('/account/apps')).html).toContain('password');

    // Other members see no connection to the erased member, and the event remains.
    const friends = await oauth.api.get('/profile', await oauth.api.key(friend));
    expect(friends.body).toMatchObject({ connections_count: 0 });
    await oauth.api.platform.participant(event, friend);
    const { body } = await oauth.api.get(`/events/${event}`, await oauth.api.key(friend));
    expect(body).toMatchObject({
      id: event,
      organizer: { id, username: `erased-${id}`, profile_picture: null },
    });
  });

  it('cannot be undone, and changes nothing when repeated', async () => {
    const { id } = await member();
    await puaJson(oauth.api.environment, ['users', 'erase', String(id), '--yes']);
    const again = await pua(oauth.api.environment, ['users', 'erase', String(id), '--yes', '--json']);
    expect(again).toMatchObject({ code: 0, stderr: `${id} was already erased: nothing changed\n` });
    for (const args of [['enable'], ['set-password', '--password-stdin']])
      expect(await pua(oauth.api.environment, ['users', ...args, String(id)], PASSWORD)).toMatchObject({
        code: 1,
        stderr: `The member ${id} was erased: that cannot be undone\n`,
      });
    for (const sql of ['disabled_at = NULL', `bio = 'back'`, `external_id = 'back'`, `username = 'back'`])
      await expect(query(`UPDATE users SET ${sql} WHERE id = ${id}`)).rejects.toThrow(
        /users_erased_(external_id_)?check/,
      );
  });

  it('makes a later import reject each line that names the member', async () => {
    const { id, friend, event } = await member();
    await puaJson(oauth.api.environment, ['users', 'erase', String(id), '--yes']);
    const { imported, firstRejects } = await importFiles(oauth.dataSource, {
      users: [{ id, username: 'again' }],
      participants: [{ event_id: event, user_id: id, role: 'organizer' }],
      connections: [{ id: 990_001, requester_id: id, addressee_id: friend, status: 'pending' }],
    });
    expect(imported).toBe(false);
    expect(firstRejects.map(({ reason }) => reason)).toEqual([
      `id: the member ${id} was erased`,
      `user_id: the member ${id} was erased`,
      `requester_id: the member ${id} was erased`,
    ]);
  });

  it('leaves audit events protected from UPDATE, before and after the erasure', async () => {
    const { id } = await oauth.member();
    await query(
      `INSERT INTO auth_events (type, actor, user_id, ip) VALUES ('user.created', 'admin', $1, '192.0.2.1')`,
      [id],
    );
    for (const sql of ['ip = NULL', `details = '{}'`, `type = 'user.enabled'`, 'user_id = NULL'])
      await expect(query(`UPDATE auth_events SET ${sql} WHERE user_id = $1`, [id])).rejects.toThrow(
        /auth_events: UPDATE is refused/,
      );
    await puaJson(oauth.api.environment, ['users', 'erase', String(id), '--yes']);
    const changed = query(`UPDATE auth_events SET type = 'user.enabled' WHERE user_id = $1`, [id]);
    await expect(changed).rejects.toThrow(/auth_events: UPDATE is refused/);
  });
});
