import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { postgresUser, startPostgres } from '../../bin/postgres.mjs';
import { RevocationChannel } from '../../src/auth/revocation-channel.js';
import { MemberReads } from '../../src/database/member-reads.js';
import { ReadConnection } from '../../src/database/postgres/read-connection.js';
import { checkReplicas } from '../../src/operations/doctor/replicas.js';
import { TestApi } from '../support/api.js';
import { migrateAt, postgres, QUICK } from '../support/database.js';
import { eventually, until } from '../support/timing.js';

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

/** The clusters accept only TLS connections. */
const HBA = `hostssl all all 127.0.0.1/32 trust
hostssl all all ::1/128 trust
hostssl replication all 127.0.0.1/32 trust
hostssl replication all ::1/128 trust
`;

postgres.describe('a primary and a replica that require TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pua-tls-'));
  const [primaryFolder, replicaFolder] = ['primary', 'replica'].map((name) =>
    mkdtempSync(join(tmpdir(), `pua-tls-${name}-`)),
  ) as [string, string];
  const file = (name: string) => join(folder, name);
  let primary: Cluster;
  let replica: Cluster;
  let api: TestApi;

  /** A key and a certificate, signed by `issuer` or self-signed. */
  function certificate(name: string, subject: string, issuer?: string): void {
    const { status, stderr } = spawnSync(
      'openssl',
      [
        ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'.split(' '),
        ...`-keyout ${file(`${name}.key`)} -out ${file(`${name}.pem`)}`.split(' '),
        ...`-subj /CN=${subject} -addext subjectAltName=DNS:${subject}`.split(' '),
        ...(issuer === undefined
          ? []
          : `-CA ${file(`${issuer}.pem`)} -CAkey ${file(`${issuer}.key`)}`.split(' ')),
      ],
      { encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(stderr);
  }

  /** Settings of a cluster, by the name in its certificate or by another name. */
  function urlOf({ url }: Cluster, { host = 'localhost', ca = 'ca' } = {}): string {
    const secured = new URL(url);
    secured.hostname = host;
    secured.searchParams.set('sslmode', 'verify-full');
    secured.searchParams.set('sslrootcert', file(`${ca}.pem`));
    return secured.href;
  }

  beforeAll(async () => {
    certificate('ca', 'ca');
    certificate('server', 'localhost', 'ca');
    certificate('stranger', 'stranger');
    writeFileSync(file('pg_hba.conf'), HBA);
    const { uid, gid } = postgresUser();
    if (uid !== undefined && gid !== undefined)
      for (const path of [folder, ...['server.key', 'server.pem', 'pg_hba.conf'].map(file)])
        chownSync(path, uid, gid);
    const settings = {
      ...QUICK,
      ssl: 'on',
      ssl_cert_file: file('server.pem'),
      ssl_key_file: file('server.key'),
      hba_file: file('pg_hba.conf'),
    };
    primary = await startPostgres(primaryFolder, settings);
    await migrateAt(urlOf(primary));
    // Without `sslcert`, libpq searches the home folder of the test's user, not of PostgreSQL's user.
    const follow = `${urlOf(primary)}&sslcert=${file('none.pem')}`;
    replica = await startPostgres(replicaFolder, settings, follow);
    api = await TestApi.start({
      databaseUrl: urlOf(primary),
      databaseDirectUrl: urlOf(primary),
      databaseReadUrls: [urlOf(replica)],
    });
  });
  afterAll(async () => {
    await api.close();
    await replica.stop();
    await primary.stop();
    for (const made of [folder, primaryFolder, replicaFolder]) rmSync(made, { recursive: true, force: true });
  });

  /** The server's sessions on a cluster, and whether each is encrypted. */
  async function sessionsOn(cluster: Cluster): Promise<[name: string, encrypted: boolean][]> {
    const client = new pg.Client({ connectionString: urlOf(cluster) });
    await client.connect();
    const { rows } = await client.query<{ name: string; ssl: boolean }>(
      `SELECT DISTINCT application_name AS name, ssl FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
WHERE application_name LIKE 'public-user-api%' ORDER BY name`,
    );
    await client.end();
    return rows.map(({ name, ssl }) => [name, ssl]);
  }

  /** Resolves when the replica has served a request of the path. */
  const readFromReplica = (path: string, key: string) =>
    eventually(async () => {
      const reads = api.app.get(MemberReads);
      const before = reads.reads.replica;
      expect((await api.get(path, key)).status).toBe(200);
      return reads.reads.replica > before || undefined;
    });

  it('serve short reads and filtered lists over encrypted sessions, and the doctor finds the replica healthy', async () => {
    const key = await api.key(await api.platform.user());
    await readFromReplica('/profile', key);
    const { id } = (await api.get('/profile', key)).body as { id: number };
    // Enough rows that a filtered list reads them on connections of the pool.
    await api.query(
      `INSERT INTO events (title, status, visibility, starts_at, timezone, organizer_id)
SELECT 'A walk over hill ' || n, 'scheduled', 'public', now(), 'UTC', $1 FROM generate_series(1, 201) n`,
      [id],
    );
    await api.query(
      `INSERT INTO participants (user_id, event_id, role, rsvp_status) SELECT $1, id, 'attendee', 'going' FROM events
WHERE organizer_id = $1 ON CONFLICT DO NOTHING`,
      [id],
    );
    // The request's second, longer read goes to the primary if the replica is behind by then.
    await until(async () => {
      await readFromReplica('/events?q=walk', key);
      return (await sessionsOn(replica)).length === 2;
    }, 'both kinds of reads by the replica');
    expect(await sessionsOn(replica)).toEqual([
      ['public-user-api', true],
      ['public-user-api reads', true],
    ]);
    const onPrimary = await sessionsOn(primary);
    expect(onPrimary.map(([name]) => name)).toEqual(
      expect.arrayContaining(['', ' reads', ' revocations', ' writes'].map((use) => `public-user-api${use}`)),
    );
    expect(onPrimary.filter(([, encrypted]) => !encrypted)).toEqual([]);
    expect(await checkReplicas(api.dataSource, [urlOf(replica)])).toMatchObject([{ status: 'ok' }]);
  });

  it.each([
    ['a certificate that another CA has issued', { ca: 'stranger' }, /self-signed certificate|unable to/],
    ['a certificate of another name', { host: '127.0.0.1' }, /does not match certificate/],
  ])(
    'serve without the replica if it presents %s, and the error names the cause',
    async (_, address, reason) => {
      const url = urlOf(replica, address);
      await expect(ReadConnection.open({ connectionString: url, primary: false })).rejects.toThrow(reason);
      expect(await checkReplicas(api.dataSource, [url])).toMatchObject([
        { status: 'warn', message: expect.stringMatching(reason) },
      ]);
      await using beside = await TestApi.start({ ...api.config, databaseReadUrls: [url] }, api);
      expect((await beside.get('/profile', await api.key(await api.platform.user()))).status).toBe(200);
      expect(await beside.app.get(MemberReads).lags()).toEqual([Infinity]);
    },
  );

  it('are reached again after the server could not read their CA’s certificate for a while', async () => {
    const key = await api.key(await api.platform.user());
    const channel = api.app.get(RevocationChannel);
    const isConnected = () => channel.trusted && api.app.get(MemberReads).hearsWrites === true;
    await until(isConnected, 'both channels are connected');
    renameSync(file('ca.pem'), file('away.pem'));
    const ended = await api.query<{ ended: boolean }>(
      "SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE application_name IN ('public-user-api revocations', 'public-user-api writes')",
    );
    expect(ended.length).toBeGreaterThanOrEqual(2);
    await eventually(() => !channel.trusted || undefined);
    renameSync(file('away.pem'), file('ca.pem'));
    await until(isConnected, 'both channels are connected again');
    await readFromReplica('/profile', key);
  });
});
