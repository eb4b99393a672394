import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { findStaleCopies } from '../../src/operations/doctor/totals.js';
import { TestApi } from '../support/api.js';
import { hold, postgres, thorough } from '../support/database.js';

const [ADA, BJÖRN, CHLOE, DMITRI] = [1, 2, 3, 4];

describe('names of other members', () => {
  let api: TestApi;
  let others: DataSource;
  let ada: string;
  let björn: string;
  beforeAll(async () => {
    api = await TestApi.start();
    others = await createDataSource(api.config, 'maintenance').initialize();
    for (const id of [ADA, BJÖRN, CHLOE, DMITRI]) await api.platform.user({ id, first_name: `Before${id}` });
    await api.platform.connection(BJÖRN, ADA);
    await api.platform.connection(BJÖRN, CHLOE);
    ada = await api.key(ADA);
    björn = await api.key(BJÖRN);
  });
  afterAll(async () => {
    await others.destroy();
    await api.close();
  });

  const found = async (q: string, key = ada) =>
    ((await api.get(`/connections?q=${q}`, key)).body as { data: { user: { id: number } }[] }).data.map(
      ({ user }) => user.id,
    );
  const rename = (id: number, name: string) =>
    api.query('UPDATE users SET first_name = $2 WHERE id = $1', [id, name]);
  const stale = async () => {
    await api.platform.settleNames();
    return findStaleCopies(api.dataSource.manager);
  };
  const connect = `WITH c AS (SELECT nextval('connections_id_seq') AS id)
INSERT INTO connections (id, user_id, peer_id, status, connected_at)
SELECT id, ${CHLOE}, ${DMITRI}, 'accepted', now() FROM c UNION ALL SELECT id, ${DMITRI}, ${CHLOE}, 'accepted', now() FROM c`;

  it('match searches for the new name only, once a rename through the API is copied', async () => {
    expect((await api.put('/profile', björn, { first_name: 'Håkan' })).status).toBe(200);
    await api.platform.copyNames();
    expect(await found('håkan')).toEqual([BJÖRN]);
    expect(await found('before2')).toEqual([]);
  });

  thorough.it('are copied by a server in the background', async () => {
    await rename(BJÖRN, 'Ingrid');
    while ((await found('ingrid')).length === 0);
    expect(await found('ingrid')).toEqual([BJÖRN]);
  });

  it('are copied in batches, even if a member is renamed between two batches', async () => {
    await rename(BJÖRN, 'Once');
    await api.query('SELECT copy_names(1)');
    await rename(BJÖRN, 'Twice');
    await rename(CHLOE, 'Thrice');
    expect(await stale()).toEqual([]);
    expect(await found('twice')).toEqual([BJÖRN]);
  });

  it('are final after a restore of a dump whose transaction numbers are above the server’s', async () => {
    await api.query(`INSERT INTO renamed_users (user_id, settled_before) VALUES (${BJÖRN}, 9000000000000)`);
    await api.platform.copyNames();
    expect(await api.query('SELECT FROM renamed_users WHERE settled_before = 9000000000000')).toEqual([]);
  });

  // The embedded database has one session: no other transaction can be in progress there.
  postgres.describe('with other database clients', () => {
    it('do not make a rename wait for a transaction that writes the member’s connections', async () => {
      const program = await hold(others, `UPDATE connections SET source = 'search' WHERE peer_id = ${BJÖRN}`);
      expect((await api.put('/profile', björn, { first_name: 'Jonna' })).status).toBe(200);
      // The background copy neither waits nor prevents copies of other names.
      await rename(CHLOE, 'Klara');
      await api.platform.copyNames();
      expect(await found('klara', björn)).toEqual([CHLOE]);
      expect(await found('jonna')).toEqual([]);
      await program.commit();
      expect(await stale()).toEqual([]);
      expect(await found('jonna')).toEqual([BJÖRN]);
    });

    it('are correct in a connection that another transaction inserts during the renames', async () => {
      const program = await hold(others, connect);
      await rename(CHLOE, 'Lotta');
      await rename(DMITRI, 'Maksim');
      await api.platform.copyNames();
      expect(await findStaleCopies(api.dataSource.manager)).toEqual([]); // visible names are correct, and all other names remain pending
      await program.commit();
      expect(await stale()).toEqual([]);
      expect(
        await api.query('SELECT peer_name FROM connections WHERE user_id = $1 ORDER BY 1', [CHLOE]),
      ).toContainEqual({ peer_name: expect.stringContaining('maksim') as unknown });
    });

    it('never revert to an older snapshot’s value: a REPEATABLE READ transaction fails', async () => {
      await api.query(
        `DELETE FROM connections WHERE (user_id, peer_id) IN ((${CHLOE}, ${DMITRI}), (${DMITRI}, ${CHLOE}))`,
      );
      const program = await hold(others, 'SELECT count(*) FROM users', [], 'REPEATABLE READ');
      await rename(DMITRI, 'Nikolai');
      await api.platform.copyNames();
      await expect(program.query(connect)).rejects.toMatchObject({ code: '40001' });
      await program.rollback();
    });
  });

  it('are derived again if a client overwrites the derived columns', async () => {
    const derived = () =>
      api.query('SELECT display_name, folded_name, folded_username, card FROM users WHERE id = $1', [CHLOE]);
    const before = (await derived()) as object[];
    await api.query(
      `UPDATE users SET display_name = 'X', folded_name = 'x', folded_username = 'x', card = 'x' WHERE id = $1`,
      [CHLOE],
    );
    expect(await derived()).toEqual(before);
  });

  it('are not in other members’ connections while their member is disabled', async () => {
    await rename(BJÖRN, 'Olle');
    await api.query(`UPDATE users SET disabled_at = now() WHERE id = ${BJÖRN}`);
    expect((await api.get('/connections', ada)).body).toMatchObject({ data: [], pagination: { total: 0 } });
    await api.query(`UPDATE users SET disabled_at = NULL WHERE id = ${BJÖRN}`);
    expect(await stale()).toEqual([]);
    expect(await found('olle')).toEqual([BJÖRN]);
  });
});
