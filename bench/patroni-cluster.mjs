// Three PostgreSQL under Patroni, with etcd and HAProxy, installed as docs/operators/failover.md describes, all on loopback: run with the unchanged files
// of deploy/patroni. Each node has its own address and the usual ports.
import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { findBinaries, postgresUser, signalPostgres } from '../bin/postgres.mjs';

const FILES = join(import.meta.dirname, '../deploy/patroni');
/** The environment variable PATRONI selects another version. */
const PROGRAMS = {
  patroni: process.env.PATRONI ?? '/opt/patroni/bin/patroni',
  'etcd-server': '/usr/bin/etcd',
  haproxy: '/usr/sbin/haproxy',
};
const NODES = ['one', 'two', 'three'];
/** Usually seconds; a busy host may take long. */
const PATIENCE_MS = 180_000;
/** loop_wait of patroni.yml. */
const LOOP_MS = 1_000;
const ROLE = 'public_user_api';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class PatroniCluster {
  /** A network that is unlikely to be in use on this host. */
  #network = `127.${randomInt(2, 255)}.${randomInt(1, 255)}`;
  #passwords = Object.fromEntries(
    ['superuser', 'replication', 'rewind', ROLE].map((name) => [name, randomBytes(18).toString('hex')]),
  );
  #children = new Map();
  #owner = postgresUser();

  /** @param {string} folder existing, empty, and accessible to all users */
  constructor(folder) {
    this.folder = folder;
    for (const path of Object.values(PROGRAMS))
      if (!existsSync(path))
        throw new Error(`${path} is missing: docs/operators/failover.md describes the installation`);
    if (this.#owner.uid !== undefined) chownSync(folder, this.#owner.uid, this.#owner.gid);
    process.on('exit', () => {
      for (const child of this.#children.values()) child.kill('SIGKILL');
      for (const node of NODES) this.#signalPostgres(node, 'SIGKILL');
    });
  }

  /** URL of the server's database at the current primary, for the server's role. */
  get url() {
    return `postgres://${ROLE}:${this.#passwords[ROLE]}@${this.#network}.10:5000/${ROLE}`;
  }

  /** URLs of the same database on each node, in any role. */
  get nodeUrls() {
    return NODES.map((node) => this.url.replace(`${this.#network}.10:5000`, `${this.#address(node)}:5432`));
  }

  async start() {
    const etcd = `http://${this.#network}.11`;
    const flags = {
      '--name': 'etcd',
      '--data-dir': join(this.folder, 'etcd'),
      '--listen-client-urls': `${etcd}:2379`,
      '--advertise-client-urls': `${etcd}:2379`,
      '--listen-peer-urls': `${etcd}:2380`,
      '--initial-advertise-peer-urls': `${etcd}:2380`,
      '--initial-cluster': `etcd=${etcd}:2380`,
    };
    this.#spawn('etcd', PROGRAMS['etcd-server'], Object.entries(flags).flat());
    for (const node of NODES) this.startNode(node);
    const addresses = NODES.map((node, i) => [`NODE_${i + 1}`, this.#address(node)]);
    const environment = { HAPROXY: `${this.#network}.10`, ...Object.fromEntries(addresses) };
    this.#spawn('haproxy', PROGRAMS.haproxy, ['-db', '-f', join(FILES, 'haproxy.cfg')], environment);
    await this.untilWhole();
    const superuser = this.url.replace(
      `${ROLE}:${this.#passwords[ROLE]}`,
      `postgres:${this.#passwords.superuser}`,
    );
    await until('HAProxy leads to the primary', async () => {
      await query(superuser.replace(/[^/]*$/, 'postgres'), 'SELECT');
      return true;
    });
    await query(
      superuser.replace(/[^/]*$/, 'postgres'),
      `CREATE ROLE ${ROLE} LOGIN PASSWORD '${this.#passwords[ROLE]}'`,
    );
    await query(superuser.replace(/[^/]*$/, 'postgres'), `CREATE DATABASE ${ROLE} OWNER ${ROLE}`);
  }

  /** Starts or restarts a node. */
  startNode(node) {
    const address = this.#address(node);
    this.#spawn(`patroni-${node}`, PROGRAMS.patroni, [join(FILES, 'patroni.yml')], {
      PATRONI_NAME: node,
      PATRONI_ETCD3_HOSTS: `${this.#network}.11:2379`,
      PATRONI_RESTAPI_LISTEN: `${address}:8008`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${address}:8008`,
      PATRONI_POSTGRESQL_LISTEN: `${address}:5432`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${address}:5432`,
      PATRONI_POSTGRESQL_DATA_DIR: this.#data(node),
      PATRONI_POSTGRESQL_BIN_DIR: findBinaries(),
      PATRONI_POSTGRESQL_PGPASS: join(this.folder, `pgpass-${node}`),
      PATRONI_SUPERUSER_PASSWORD: this.#passwords.superuser,
      PATRONI_REPLICATION_PASSWORD: this.#passwords.replication,
      PATRONI_REWIND_PASSWORD: this.#passwords.rewind,
    });
  }

  /** Waits until one node leads, two follow, and one of the two is synchronous. */
  async untilWhole() {
    let members = [];
    await until(
      'three nodes run, one of them the leader and one its synchronous standby',
      async () => {
        members = await this.#members();
        const roles = members.map(({ role, state }) => `${role} ${state}`).sort();
        return /^leader running,replica (running|streaming),sync_standby (running|streaming)$/.test(
          roles.join(),
        );
      },
      () => JSON.stringify(members),
    );
  }

  /** Sends SIGKILL to a node's Patroni and all its PostgreSQL processes; {@link startNode} starts it again. */
  kill(node) {
    this.#children.get(`patroni-${node}`).kill('SIGKILL');
    this.#signalPostgres(node, 'SIGKILL');
  }

  /** Freezes a node: its PostgreSQL, then its Patroni. */
  freeze(node) {
    this.#signalPostgres(node, 'SIGSTOP');
    this.#children.get(`patroni-${node}`).kill('SIGSTOP');
  }

  /**
   * Freezes only the leader's Patroni: its PostgreSQL continues. The worst moment is after Patroni has read the leader's name, while it waits for
   * its own PostgreSQL: then Patroni acts as the leader when it resumes.
   *
   * @returns the leader's name, for {@link thaw}
   */
  async freezePatroni() {
    const leader = await this.leader();
    const connections = await query(
      `postgres://postgres:${this.#passwords.superuser}@${this.#address(leader)}:5432/postgres`,
      "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'Patroni%'",
    );
    for (const { pid } of connections) process.kill(pid, 'SIGSTOP');
    await pause(LOOP_MS + 500);
    this.#children.get(`patroni-${leader}`).kill('SIGSTOP');
    for (const { pid } of connections) process.kill(pid, 'SIGCONT');
    return leader;
  }

  /** Resumes the frozen processes of a node. */
  thaw(node) {
    this.#children.get(`patroni-${node}`).kill('SIGCONT');
    this.#signalPostgres(node, 'SIGCONT');
  }

  freezeEtcd() {
    this.#children.get('etcd').kill('SIGSTOP');
  }

  thawEtcd() {
    this.#children.get('etcd').kill('SIGCONT');
  }

  /** Asks the leader's Patroni to hand over to its synchronous standby. @returns the names of both */
  async switchOver() {
    const [leader, candidate] = [await this.leader(), await this.synchronousStandby()];
    const answer = await fetch(`http://${this.#address(leader)}:8008/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader, candidate }),
    });
    if (!answer.ok) throw new Error(`switchover: ${answer.status} ${await answer.text()}`);
    return [leader, candidate];
  }

  /** Waits until another node leads. */
  async untilAnotherLeads(node) {
    await until('another node leads', async () => (await this.leader()) !== node);
  }

  /** Waits for a leader: on a busy host there may be none for a moment, or no node responds in time. @returns its name */
  leader() {
    return until('a node leads', () => this.#withRole('leader'));
  }

  /** Waits for a synchronous standby. @returns its name */
  synchronousStandby() {
    return until('a node is the synchronous standby', () => this.#withRole('sync_standby'));
  }

  async stop() {
    const ended = [...this.#children.values()].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      child.kill('SIGCONT'); // the frozen processes
      await once(child, 'close');
    });
    await Promise.race([Promise.all(ended), pause(20_000)]);
  }

  async #withRole(wanted) {
    return (await this.#members()).find(({ role }) => role === wanted)?.name;
  }

  #address(node) {
    return `${this.#network}.${NODES.indexOf(node) + 1}`;
  }

  #data(node) {
    return join(this.folder, `data-${node}`);
  }

  /** The members as seen by the first node that responds. */
  async #members() {
    for (const node of NODES) {
      const answer = await fetch(`http://${this.#address(node)}:8008/cluster`, {
        signal: AbortSignal.timeout(2_000),
      }).catch(() => undefined);
      if (answer?.ok) return (await answer.json()).members ?? [];
    }
    return [];
  }

  #signalPostgres(node, signal) {
    const file = join(this.#data(node), 'postmaster.pid');
    if (!existsSync(file)) return;
    const postmaster = Number(readFileSync(file, 'utf8').split('\n')[0]);
    if (postmaster > 0) signalPostgres(postmaster, signal); // no id while PostgreSQL writes the file
  }

  #spawn(name, program, parameters, environment = {}) {
    mkdirSync(this.folder, { recursive: true });
    const log = openSync(join(this.folder, `${name}.log`), 'a');
    const child = spawn(program, parameters, {
      ...this.#owner,
      cwd: this.folder,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...environment },
      stdio: ['ignore', log, log],
    });
    child.on('error', (error) => console.error(`${name}: ${error.message}`));
    this.#children.set(name, child);
  }
}

async function until(what, condition, last = () => '') {
  let failure;
  for (const latest = performance.now() + PATIENCE_MS; performance.now() < latest; await pause(200)) {
    const come = await condition().catch((error) => void (failure = error));
    if (come) return come;
  }
  throw new Error(`timed out waiting until ${what}: ${last()}`, { cause: failure });
}

async function query(url, sql) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
