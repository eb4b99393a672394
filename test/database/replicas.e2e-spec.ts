import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { DataSource } from 'typeorm';
import { signalPostgres, startPostgres } from '../../bin/postgres.mjs';
import { closeApp, createApp } from '../../src/app.js';
import { createDataSource } from '../../src/database/postgres/data-source.js';
import { MemberReads } from '../../src/database/member-reads.js';
import { Replica } from '../../src/database/replicas/replica.js';
import { checkReplicas } from '../../src/operations/doctor/replicas.js';
import { WebhooksService } from '../../src/webhooks/webhooks.service.js';
import { TestApi } from '../support/api.js';
import { migrateAt, postgres, QUICK, testConfig } from '../support/database.js';
import { freePort } from '../support/oauth.js';
import { Receiver } from '../support/receiver.js';
import { profileAt, ServerProcess } from '../support/server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { eventually } from '../support/timing.js';

const SETTINGS = { ...QUICK, wal_retrieve_retry_interval: '100ms' };

type Cluster = Awaited<ReturnType<typeof startPostgres>>;

postgres.describe('streaming replicas', () => {
  const folders = ['primary', 'first', 'second'].map((name) => mkdtempSync(join(tmpdir(), `pua-${name}-`)));
  let primary: Cluster;
  let replicas: Cluster[];
  /** Connections to the replicas as superuser. */
  let sessions: DataSource[];
  let api: TestApi;
  let channel: TcpProxy;
  /** Another instance, which is notified of writes through the proxy. */
  let other: NestExpressApplication;
  let urls: string[];

  const configOf = (url: string) =>
    testConfig({ NODE_ENV: 'test', SECRET_KEY: process.env.TEST_SECRET_KEY!, DATABASE_URL: url });
  const open = (url: string) => createDataSource(configOf(url), 'maintenance').initialize();

  beforeAll(async () => {
    primary = await startPostgres(folders[0]!, SETTINGS);
    await migrateAt(primary.url);
    const follower = await open(primary.url);
    replicas = [];
    for (const folder of folders.slice(1)) {
      replicas.push(await startPostgres(folder, SETTINGS, primary.url));
      // The next backup's checkpoint may remove WAL that this replica has not received.
      await eventually(async () => {
        const streaming = await follower.query<[]>(
          `SELECT FROM pg_stat_replication WHERE state = 'streaming'`,
        );
        return streaming.length === replicas.length || undefined;
      }).catch(() => {
        throw new Error(readFileSync(join(folder, 'log'), 'utf8'));
      });
    }
    await follower.destroy();
    sessions = await Promise.all(replicas.map(({ url }) => open(url)));
    api = await TestApi.start({
      databaseUrl: primary.url,
      databaseDirectUrl: primary.url,
      databaseReadUrls: replicas.map(({ url }) => url),
    });
    channel = await TcpProxy.start(primary.url);
    other = await createApp({ ...api.config, databaseDirectUrl: channel.url });
    await other.listen(0, '127.0.0.1');
    urls = [api.app, other].map((app) => {
      const { port } = app.getHttpServer().address() as { port: number };
      return `http://127.0.0.1:${port}`;
    });
  });
  afterAll(async () => {
    await closeApp(other);
    await channel.close();
    await Promise.all(sessions.map((session) => session.destroy().catch(() => undefined)));
    await api.close();
    await Promise.all(replicas.map((replica) => replica.stop()));
    await primary.stop();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const pause = () => Promise.all(sessions.map((session) => session.query('SELECT pg_wal_replay_pause()')));
  const resume = () => Promise.all(sessions.map((session) => session.query('SELECT pg_wal_replay_resume()')));

  afterEach(resume);

  const get = async (path: string, key: string, instance: number) => {
    const response = await fetch(`${urls[instance]}/api/public${path}`, { headers: { 'X-API-Key': key } });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const bioOf = async (key: string, instance: number) => (await get('/profile', key, instance)).body.bio;
  const put = async (bio: string, key: string, instance: number) =>
    (await profileAt(urls[instance]!, key, bio)).status;
  /** Writes as another database client does. */
  const write = (member: number, bio: string) =>
    api.query('UPDATE users SET bio = $2 WHERE id = $1', [member, bio]);

  /** Resolves when the instance reads the member's data from replicas. */
  const readFromReplicas = (key: string, instance: number) =>
    eventually(async () => {
      const { reads } = [api.app, other][instance]!.get(MemberReads);
      const before = reads.replica;
      await bioOf(key, instance);
      return reads.replica > before || undefined;
    });

  /** Members and their keys, whose data both instances read from replicas. */
  async function makeMembers(count: number, bio = 'as it was'): Promise<{ id: number; key: string }[]> {
    const made: { id: number; key: string }[] = [];
    while (made.length < count) {
      const id = await api.platform.user({ bio });
      made.push({ id, key: await api.key(id) });
    }
    // One after the other: an instance reads from replicas only while heartbeats arrive within 250 ms.
    for (const { key } of made) for (const instance of [0, 1]) await readFromReplicas(key, instance);
    return made;
  }
  const member = async (bio?: string) => (await makeMembers(1, bio))[0]!;

  it('serve reads: each of two replicas serves some of 20 members', async () => {
    const lookUps = (session: DataSource) =>
      session
        .query<{ n: number }[]>(
          "SELECT idx_scan + seq_scan AS n FROM pg_stat_user_tables WHERE relname = 'users'",
        )
        .then(([row]) => row!.n);
    const before = await Promise.all(sessions.map(lookUps));
    expect(before).toHaveLength(2);
    const keys = (await makeMembers(20)).map(({ key }) => key);
    for (const [index, session] of sessions.entries())
      await eventually(async () => {
        for (const key of keys) await bioOf(key, 0);
        return (await lookUps(session)) > before[index]! || undefined;
      });
  });

  it('never decide on credentials: a new key is accepted and a revoked key rejected, although replicas lack the change', async () => {
    const { id, key } = await member();
    await pause();
    const made = await api.key(id);
    expect([await bioOf(made, 0), await bioOf(made, 1)]).toEqual(['as it was', 'as it was']);
    await api.query(
      "UPDATE api_keys SET revoked_at = now(), revocation_reason = 'lost' WHERE user_id = $1 AND id = $2",
      [id, key.split('_')[2]],
    );
    for (const instance of [0, 1])
      await eventually(async () => (await get('/profile', key, instance)).status === 401 || undefined);
  });

  it('do not serve a new member whose data the replicas lack', async () => {
    await pause();
    const id = await api.platform.user({ bio: 'new' });
    const event = await api.platform.event({ organizer_id: id });
    await api.platform.participant(event, id, { role: 'organizer' });
    const key = await api.key(id);
    for (const instance of [0, 1]) {
      expect(await bioOf(key, instance)).toBe('new');
      expect((await get(`/events/${event}`, key, instance)).status).toBe(200);
      for (const path of ['/me', '/events', '/connections', '/achievements', '/achievements?action=stats'])
        expect([path, (await get(path, key, instance)).status]).toEqual([path, 200]);
    }
  });

  it('are skipped for a member who learned from /sync or a 412 of a change that the replicas lack', async () => {
    const { id, key } = await member();
    const start = (await get('/sync', key, 0)).body.next as string;
    await Promise.all([0, 1].map((instance) => readFromReplicas(key, instance)));
    await pause();
    await write(id, 'told of');
    // A recorded change can be read as soon as no older transaction is open.
    await eventually(async () => {
      const { body } = await get(`/sync?cursor=${encodeURIComponent(start)}`, key, 0);
      return (body.data as unknown[]).length > 0 || undefined;
    });
    expect([await bioOf(key, 0), await bioOf(key, 1)]).toEqual(['told of', 'told of']);
    await resume();

    const { id: refused, key: itsKey } = await member();
    const etag = (await profileAt(urls[0]!, itsKey)).headers.get('etag')!;
    await Promise.all([0, 1].map((instance) => readFromReplicas(itsKey, instance)));
    await pause();
    await write(refused, 'changed meanwhile');
    const { status, headers } = await profileAt(urls[0]!, itsKey, 'overwritten', { 'If-Match': etag });
    expect(status).toBe(412);
    for (const instance of [0, 1]) {
      expect((await profileAt(urls[instance]!, itsKey)).headers.get('etag')).toBe(headers.get('etag'));
    }
  });

  it('are skipped for a member after a webhook message about a change that the replicas lack', async () => {
    const { id, key } = await member();
    await using receiver = await Receiver.start();
    const webhooks = new WebhooksService(api.dataSource, api.config);
    const found: unknown[] = [];
    receiver.respond = ({ message }, response) => {
      const looks = message.data.member_id === id ? [0, 1] : [];
      void Promise.all(looks.map((instance) => bioOf(key, instance))).then((bios) => {
        found.push(...bios);
        response.writeHead(204).end();
      });
    };
    const { url } = receiver;
    const endpoint = await webhooks.create({ url, types: ['profile.updated'], actor: 'admin' });
    await pause();
    await write(id, 'told by a webhook');
    await eventually(() => found.length >= 2 || undefined);
    expect(found).toEqual(found.map(() => 'told by a webhook'));
    await webhooks.disable(endpoint.id, 'admin');
  });

  it('are named by the doctor, with their faults', async () => {
    const check = (...read: string[]) => checkReplicas(api.dataSource, read);
    const [first, second] = replicas as [Cluster, Cluster];
    await eventually(async () =>
      (await check(first.url, second.url)).every(({ status }) => status === 'ok') ? true : undefined,
    );
    const wrong = await check(
      primary.url,
      first.url.replace(/postgres$/, 'template1'),
      `postgres://pua:hunter2@127.0.0.1:${await freePort()}/postgres`,
    );
    expect(wrong.map(({ name, status, message }) => `${name} ${status}: ${message}`)).toEqual([
      'replica 1 ok: is the primary now',
      'replica 2 warn: is not a streaming replica of this database, and is not used',
      expect.stringMatching(/^replica 3 warn: cannot be reached \(.*ECONNREFUSED/),
    ]);
    expect(JSON.stringify(wrong)).not.toContain('hunter2');
    expect(await check()).toEqual([]);
  });

  it('are skipped on both instances for a member whose record from a feed has not reached the replicas', async () => {
    const { id, key } = await member();
    const platform = await api.platformKey();
    await pause();
    const line = { type: 'users', op: 'put', record: { id, username: `fed_${id}`, bio: 'fed' } };
    const fed = await api.feed(platform, [line]);
    expect([fed.status, fed.body]).toMatchObject([200, { updated: 1 }]);
    expect([await bioOf(key, 0), await bioOf(key, 1)]).toEqual(['fed', 'fed']);
  });

  it('are skipped if they stay too far behind the primary', async () => {
    const { id, key } = await member();
    await pause();
    await write(id, '5 s ago');
    for (const instance of [0, 1])
      expect(await eventually(async () => (await bioOf(key, instance)) === '5 s ago' || undefined)).toBe(
        true,
      );
  });

  it('are skipped by an instance that gets no notifications of other instances’ writes', async () => {
    const { id, key } = await member();
    await pause();
    await write(id, 'unheard');
    channel.cut();
    await eventually(async () => (await bioOf(key, 1)) === 'unheard' || undefined);
    expect(await put('written elsewhere', key, 0)).toBe(200);
    expect(await bioOf(key, 1)).toBe('written elsewhere');
    // Replicas stay skipped after notifications are back, since the instance missed some.
    channel.mend();
    await resume();
    await readFromReplicas(key, 1);
    expect(await bioOf(key, 1)).toBe('written elsewhere');
  });

  it('must prove that they follow this primary, regardless of the position that the replicas report', async () => {
    const need = { position: 0, epoch: 1, server: '' };
    // The server writes its proof after the start.
    const { proof } = await eventually(async () => {
      const [row] = await api.query<{ proof: string }>(
        'SELECT taken_at::text AS proof FROM change_marks ORDER BY taken_at DESC LIMIT 1',
      );
      return row;
    });
    const replica = new Replica(api.config, replicas[0]!.url);
    const itself = new Replica(api.config, primary.url);
    try {
      await eventually(() => replica.sessionWith({ ...need, proof }));
      expect(replica.sessionWith({ ...need, proof, epoch: 2 })).toBeUndefined();
      const stranger = { ...need, epoch: 3, proof: '2001-01-01 00:00:00.123456+00' };
      expect(await replica.lag(stranger)).toBe(Infinity);
      for (let asked = 0; asked < 20; asked++) {
        // The last check of this connection found no proof.
        expect(await replica.lag(stranger)).toBe(Infinity);
        expect(replica.sessionWith(stranger)).toBeUndefined();
      }
      expect(await replica.query({ text: 'SELECT 1' }, stranger)).toBeUndefined();
      // The server reads only from a standby: not from a promoted server, nor from the primary by mistake.
      await eventually(async () => ((await itself.lag({ ...need, proof })) === Infinity ? true : undefined));
      expect(itself.sessionWith({ ...need, proof })).toBeUndefined();
    } finally {
      await Promise.all([replica.end(), itself.end()]);
    }
  });

  it('are in the metrics: the reads on replicas, each replica’s lag, and whether it is used', async () => {
    const { id, key } = await member();
    const port = await freePort();
    const app = await createApp({ ...api.config, metricsPort: port });
    await app.listen(0, '127.0.0.1');
    const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const told = (...lines: RegExp[]) =>
      eventually(async () => {
        const text = await scrape();
        return lines.every((line) => line.test(text)) || undefined;
      });
    const address = app.getHttpServer().address() as { port: number };
    const reading = eventually(async () => {
      await fetch(`http://127.0.0.1:${address.port}/api/public/me`, { headers: { 'X-API-Key': key } });
      return /^member_reads_total\{place="replica"\} [1-9]/m.test(await scrape()) || undefined;
    });
    expect(await reading).toBe(true);
    await told(
      /^database_replica_lag_seconds\{replica="[12]"\} 0$/m,
      /^database_replica_asked\{replica="1"\} 1\ndatabase_replica_asked\{replica="2"\} 1$/m,
      /^member_writes_channel_up 1$/m,
    );
    await sessions[1]!.query('SELECT pg_wal_replay_pause()');
    await write(id, 'not there yet');
    await told(
      /^database_replica_lag_seconds\{replica="2"\} [5-9]/m,
      /^database_replica_asked\{replica="1"\} 1\ndatabase_replica_asked\{replica="2"\} 0$/m,
    );
    await closeApp(app);
  });

  it('are skipped while notifications of members’ writes are missing; each disconnection is logged once', async () => {
    const direct = await TcpProxy.start(primary.url);
    const metricsPort = await freePort();
    const server = await ServerProcess.start({
      NODE_ENV: 'test',
      SECRET_KEY: process.env.TEST_SECRET_KEY!,
      DATABASE_URL: primary.url,
      DATABASE_DIRECT_URL: direct.url,
      DATABASE_READ_URL: replicas.map(({ url }) => url).join(' '),
      METRICS_PORT: String(metricsPort),
      LOG_LEVEL: 'info',
      PORT: '0',
    });
    const shows = (line: string) =>
      eventually(async () => {
        const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
        return text.split('\n').includes(line) || undefined;
      });
    /** Log lines about a channel, in order: a busy host may break the channel more often than this test does. */
    const saysOf = (channel: string) =>
      server.output.split('\n').flatMap((line) => {
        const [, state] =
          new RegExp(`"msg":"the ${channel} is (disconnected|connected again)`).exec(line) ?? [];
        return state ?? [];
      });
    const channels = ['channel of member writes', 'revocation channel'];
    await shows('member_writes_channel_up 1');
    await shows('database_replica_asked{replica="1"} 1');
    direct.cut();
    await shows('member_writes_channel_up 0');
    await shows('database_replica_asked{replica="1"} 0');
    const enough = direct.refused + 20;
    await eventually(() => direct.refused >= enough || undefined); // each channel has retried several times
    direct.mend();
    await shows('member_writes_channel_up 1');
    await eventually(() => channels.every((name) => saysOf(name).at(-1) === 'connected again') || undefined);
    await server.kill();
    await direct.close();
    expect(server.output).toMatch(/"level":"warn".*"reason":".+".*channel of member writes is disconnected/);
    for (const channel of channels) {
      const said = saysOf(channel);
      expect(said.length).toBeGreaterThanOrEqual(2);
      expect(said).toEqual(said.map((_, index) => (index % 2 === 0 ? 'disconnected' : 'connected again')));
    }
  });

  it('show 50 members their own writes in all 2,000 reads, on two instances, with half a second of lag', async () => {
    await sessions[1]!.query("ALTER SYSTEM SET recovery_min_apply_delay = '500ms'");
    await sessions[1]!.query('SELECT pg_reload_conf()');
    const members = await makeMembers(50);
    const before = api.app.get(MemberReads).reads.replica + other.get(MemberReads).reads.replica;
    let read = 0;
    const stale: string[] = [];
    await Promise.all(
      members.map(async ({ key }, which) => {
        for (let round = 0; round < 4; round++) {
          const bio = `member ${which}, round ${round}`;
          expect(await put(bio, key, (which + round) % 2)).toBe(200);
          for (let look = 0; look < 10; look++) {
            read++;
            const found = await bioOf(key, look % 2);
            if (found !== bio) stale.push(`${bio}: ${String(found)}`);
          }
        }
      }),
    );
    expect([read, stale]).toEqual([2_000, []]);
    const after = api.app.get(MemberReads).reads.replica + other.get(MemberReads).reads.replica;
    expect(after - before).toBeGreaterThan(0);
    await sessions[1]!.query('ALTER SYSTEM RESET recovery_min_apply_delay');
    await sessions[1]!.query('SELECT pg_reload_conf()');
  });

  it('cause no failed request, readiness check or start when the replicas are killed or frozen', async () => {
    const { key } = await member();
    const paths = ['/me', '/profile', '/events', '/events?q=nothing', '/connections', '/achievements'];
    const statuses = new Set<number>();
    let rounds = 0;
    let ended = false;
    const asking = Promise.all(
      [0, 1].map(async (instance) => {
        for (; !ended; rounds++)
          for (const path of paths) statuses.add((await get(path, key, instance)).status);
      }),
    );
    const someRounds = async () => {
      const enough = rounds + 20;
      await eventually(() => rounds >= enough || undefined);
    };
    const [first, second] = replicas as [Cluster, Cluster];
    await someRounds();
    signalPostgres(first.pid, 'SIGSTOP'); // its connections remain, without a response
    await someRounds();
    signalPostgres(first.pid, 'SIGKILL');
    await someRounds();
    signalPostgres(second.pid, 'SIGKILL');
    await someRounds();
    expect(await put('without any', key, 0)).toBe(200);
    expect(await bioOf(key, 1)).toBe('without any');
    expect((await fetch(new URL('/readyz', urls[0]))).status).toBe(200);
    const started = await createApp(api.config);
    await started.listen(0, '127.0.0.1');
    const { port } = started.getHttpServer().address() as { port: number };
    const me = `http://127.0.0.1:${port}/api/public/me`;
    await eventually(
      async () => (await fetch(me, { headers: { 'X-API-Key': key } })).status === 200 || undefined,
    );
    await closeApp(started);
    ended = true;
    await asking;
    expect([...statuses]).toEqual([200]);
    // The other tests need both replicas, at the same URLs.
    replicas = await Promise.all(
      replicas.map(({ url }, i) => startPostgres(folders[i + 1]!, { ...SETTINGS, port: new URL(url).port })),
    );
  });
});
