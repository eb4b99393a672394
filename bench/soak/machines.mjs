// What the soak runs on: PostgreSQL with a standby, Redis, two instances, the balancer in front of them, and receivers of what they send.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { freePort, startPostgres } from '../../bin/postgres.mjs';
import { freshDatabase, Instance, openServices, Proxy, Redis } from '../instances.mjs';
import { CLIENT_ID } from '../oauth-client.mjs';
import { memoryMegabytes } from '../usage.mjs';

const root = join(import.meta.dirname, '../..');
export const MEMBERS = 300;
const POSTGRES = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: '256MB',
  wal_retrieve_retry_interval: '200ms',
};
/** Between two looks of the balancer at each instance. */
const CHECK_MS = 200;
const WEBHOOK_TYPES = ['profile.updated', 'events.updated', 'events.removed'];

/** PostgreSQL and a standby, without which no COMMIT is confirmed. `proxy` leads to the primary. */
class Cluster {
  #folder = mkdtempSync(join(tmpdir(), 'pua-soak-postgres-'));
  #made = 0;
  failovers = 0;

  async start() {
    chmodSync(this.#folder, 0o755); // PostgreSQL runs as another user
    this.primary = await this.#startServer();
    this.proxy = await new Proxy().start(this.primary.url);
    await ask(
      this.primary.url,
      'CREATE ROLE pua LOGIN NOSUPERUSER CREATEDB; ALTER DATABASE postgres OWNER TO pua',
    );
    await this.addStandby();
    return this;
  }

  async #startServer(primary) {
    const folder = join(this.#folder, String(++this.#made));
    mkdirSync(folder);
    // A standby copies the primary, and follows whichever the proxy leads to.
    const follows = primary && {
      primary_conninfo: `host=127.0.0.1 port=${new URL(this.proxy.url).port} user=postgres`,
    };
    return { folder, ...(await startPostgres(folder, { ...POSTGRES, ...follows }, primary)) };
  }

  async addStandby() {
    this.standby = await this.#startServer(this.primary.url);
    await ask(this.primary.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await ask(this.primary.url, 'SELECT pg_reload_conf()');
    await this.#isConfirmed();
  }

  async #isConfirmed() {
    while (
      (await ask(this.primary.url, 'SELECT FROM pg_stat_replication WHERE sync_state = $1', ['sync']))
        .length === 0
    )
      await pause(50);
  }

  /** Kills the primary with all of its processes, and lets the standby take its place; there is no other until `addStandby`. */
  async failOver() {
    const { primary, standby } = this;
    process.kill(-primary.pid, 'SIGKILL');
    await primary.stop('SIGKILL');
    await ask(standby.url, 'ALTER SYSTEM RESET synchronous_standby_names');
    await ask(standby.url, 'SELECT pg_reload_conf()');
    await ask(standby.url, 'SELECT pg_promote()');
    this.primary = standby;
    this.failovers++;
    this.proxy.lead(standby.url);
    rmSync(primary.folder, { recursive: true });
  }

  /** Stops the primary as an administrator does, and starts it again. */
  async restart() {
    const { folder, stop } = this.primary;
    await stop();
    this.primary = { folder, ...(await startPostgres(folder, POSTGRES)) };
    this.proxy.lead(this.primary.url);
    await this.#isConfirmed();
  }

  async stop() {
    this.proxy?.stop();
    await this.standby?.stop('SIGQUIT');
    await this.primary?.stop('SIGQUIT');
    rmSync(this.#folder, { recursive: true });
  }
}

async function ask(connectionString, sql, parameters) {
  const client = new pg.Client({ connectionString, application_name: 'soak' });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(sql, parameters)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

class Watched extends Instance {
  /** @returns its use of resources; NaN while it is not there */
  async sample() {
    const { pid } = this;
    const metrics = await fetch(`http://127.0.0.1:${this.environment.METRICS_PORT}/metrics`)
      .then((answer) => answer.text())
      .catch(() => '');
    const metric = (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN);
    return {
      pid,
      rss: memoryMegabytes(pid) || Number.NaN,
      heap: metric('nodejs_heap_size_used_bytes') / 2 ** 20,
      descriptors: existsSync(`/proc/${pid}/fd`) ? readdirSync(`/proc/${pid}/fd`).length : Number.NaN,
      handles: metric('nodejs_active_resources_total'),
    };
  }

  /** As a service manager does. @throws if it does not end with 0 */
  async restart() {
    const code = await this.kill('SIGTERM');
    if (code !== 0) throw new Error(`${this.name} ended with ${code}`);
    await this.start();
  }
}

/** Sends requests to the instances in turn that say that they are ready; to all, if none does. */
class Balancer {
  #ready = new Set();
  #turn = 0;
  #isOver = false;

  constructor(instances) {
    this.instances = instances;
    for (const instance of instances) void this.#watch(instance);
  }

  async #watch(instance) {
    while (!this.#isOver) {
      const signal = AbortSignal.timeout(1_000);
      const isReady = await fetch(`${instance.url}/readyz`, { signal }).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isReady) this.#ready.add(instance);
      else this.#ready.delete(instance);
      await pause(CHECK_MS);
    }
  }

  get serving() {
    return this.#ready.size > 0 ? [...this.#ready] : this.instances;
  }

  next() {
    const { serving } = this;
    return serving[this.#turn++ % serving.length];
  }

  stop() {
    this.#isOver = true;
  }
}

/** Counts the messages of webhooks and the logout tokens that arrive. */
async function startReceiver() {
  const received = { messages: 0, logouts: 0 };
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    received[request.url === '/logout' ? 'logouts' : 'messages']++;
    response.writeHead(request.url === '/logout' ? 200 : 204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { received, url: `http://127.0.0.1:${server.address().port}`, stop };
}

/**
 * Starts everything.
 *
 * @param {string} tree of the program with which the instances begin
 * @param {import('node:stream').Writable} log
 */
export async function startMachines(tree, log) {
  const cluster = await new Cluster().start();
  process.env.TEST_DATABASE_URL = cluster.proxy.url.replace('postgres@', 'pua@');
  process.env.TEST_SUPERUSER_URL = cluster.proxy.url;
  const folder = mkdtempSync(join(tmpdir(), 'pua-soak-'));
  const redis = await new Redis(folder).start();
  const database = await freshDatabase();
  /** Between the first instance and the database. */
  const link = await new Proxy().start(database.url);
  const environment = async (more) =>
    database.environment({
      METRICS_PORT: String(await freePort()),
      LOG_LEVEL: 'warn',
      LOG_FORMAT: 'json',
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      // Counted as usual, with a ceiling out of reach: all callers share one address.
      ...Object.fromEntries(
        ['READ', 'WRITE', 'PLATFORM', 'AUTH'].map((kind) => [`RATE_LIMIT_${kind}`, '1000000']),
      ),
      SWEEP_INTERVAL: '20',
      SHUTDOWN_DELAY: '2',
      ASSISTANTS: 'true',
      ...more,
    });
  const first = new Watched('first', await environment({ DATABASE_URL: link.url }), log, tree);
  const { PUBLIC_URL } = first.environment;
  const second = new Watched('second', await environment({ PUBLIC_URL }), log, tree);
  const receiver = await startReceiver();

  const services = await openServices({ ...first.environment, DATABASE_URL: database.url }, tree);
  await services.addMembers(MEMBERS);
  await services.addClient();
  const keys = [];
  for (let id = 1; id <= MEMBERS; id++) keys.push(await services.makeKey(id));
  const platformKey = await services.makeKey(null);
  await services.addWebhook(receiver.url, WEBHOOK_TYPES);
  await services.dataSource.destroy();
  await ask(database.superuserUrl, 'CREATE SCHEMA soak; CREATE EXTENSION pgstattuple SCHEMA soak');

  const instances = [first, second];
  for (const instance of instances) await instance.start();
  const balancer = new Balancer(instances);
  return {
    cluster,
    redis,
    link,
    first,
    second,
    instances,
    balancer,
    receiver,
    keys,
    platformKey,
    databaseName: database.name,
    superuserUrl: database.superuserUrl,
    query: (sql, parameters) => ask(database.superuserUrl, sql, parameters),
    /** Runs a command of this tree's program. @returns what it prints @throws if it fails */
    async pua(...parameters) {
      const child = spawn(process.execPath, ['bin/pua.mjs', ...parameters], {
        cwd: root,
        env: { ...second.environment, LOG_LEVEL: 'silent' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const [out, error, [code]] = await Promise.all([
        child.stdout.toArray(),
        child.stderr.toArray(),
        once(child, 'exit'),
      ]);
      const text = Buffer.concat(out).toString();
      if (code !== 0 && parameters[0] !== 'doctor')
        throw new Error(`pua ${parameters.join(' ')}: ${text}${Buffer.concat(error).toString()}`);
      return text;
    },
    /** From now on the app of oauth-client.mjs is told of sign-outs. */
    async tellOfSignOuts() {
      await this.pua('clients', 'update', CLIENT_ID, '--backchannel-logout-uri', `${receiver.url}/logout`);
    },
    async stop() {
      balancer.stop();
      for (const instance of instances) await instance.kill('SIGTERM');
      await redis.kill();
      receiver.stop();
      link.stop();
      await cluster.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
