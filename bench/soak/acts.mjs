// What happens to the machines of the soak, one act after the other: planned operations, which may cost no request, and faults.
import { setTimeout as pause } from 'node:timers/promises';
import { join } from 'node:path';
import pg from 'pg';
import { MEMBERS } from './machines.mjs';

const root = join(import.meta.dirname, '../..');
/** How long a fault lasts, and how long its effects may last afterwards: the server promises 2 s, of its own processor. */
const FAULT_MS = 5_000;
const AFTERMATH_MS = 4_000;
/** How long the first key of a rotation stays valid; shorter than the pause between acts. */
const OVERLAP_SECONDS = 5;
/** How long a change of SECRET_KEY waits for all that is in use to be moved. */
const MOVED_WITHIN_MS = 120_000;

/** Excused while the database is away, and shortly after it: `503`. Of an instance that is killed: connections that are `cut`. */
const DATABASE = ['503'];
const PROCESS = ['cut'];

/**
 * By name: what is done, what it excuses, and whether it restarts the first instance, whose memory is watched: that is done once.
 *
 * @type {Record<string, {run: (machines: object, traffic: object) => Promise<void>, excuses?: string[], restartsFirst?: boolean}>}
 */
export const ACTS = {
  'upgrade from 1.1.0': {
    restartsFirst: true,
    async run(machines, traffic) {
      await machines.pua('db', 'migrate');
      for (const instance of machines.instances) instance.tree = root;
      await restartAll(machines);
      await machines.tellOfSignOuts();
      traffic.hasAssistants = true;
    },
  },
  'all connections dropped': {
    excuses: DATABASE,
    run: ({ query, databaseName }) =>
      query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`,
        [databaseName],
      ),
  },
  'SECRET_KEY changed, round 1: the next one is known': {
    restartsFirst: true,
    async run(machines) {
      machines.secrets = {
        old: machines.first.environment.SECRET_KEY,
        next: (await machines.pua('secrets', 'generate')).trim(),
      };
      await restartAll(machines, { SECRET_KEY_PREVIOUS: machines.secrets.next });
    },
  },
  'a table locked': {
    excuses: DATABASE,
    async run({ superuserUrl }) {
      const client = new pg.Client(superuserUrl);
      await client.connect();
      await client.query('BEGIN; LOCK TABLE participants IN ACCESS EXCLUSIVE MODE');
      await pause(FAULT_MS);
      await client.query('ROLLBACK');
      await client.end();
    },
  },
  'SECRET_KEY changed, round 2: the next one is used': {
    restartsFirst: true,
    async run(machines, traffic) {
      const { old, next } = machines.secrets;
      await restartAll(machines, { SECRET_KEY: next, SECRET_KEY_PREVIOUS: old });
      machines.secrets.usedFrom = traffic.now();
    },
  },
  'an instance killed': {
    excuses: PROCESS,
    async run({ second }) {
      await second.kill();
      await pause(FAULT_MS);
      await second.start();
    },
  },
  'SECRET_KEY changed, round 3: the old one is forgotten': {
    restartsFirst: true,
    async run(machines, traffic) {
      const until = performance.now() + MOVED_WITHIN_MS;
      let named;
      while (
        !traffic.areAllUsedSince(machines.secrets.usedFrom) ||
        (named = await needingPrevious(machines)).length > 0
      ) {
        if (performance.now() > until) throw new Error(`still used: ${named}`);
        await pause(2_000);
      }
      await restartAll(machines, { SECRET_KEY_PREVIOUS: '' });
    },
  },
  'signing keys rotated': { run: ({ pua }) => pua('signing-keys', 'rotate') },
  'the database cut off one instance': {
    excuses: DATABASE,
    async run({ link }) {
      link.cut();
      await pause(FAULT_MS);
      link.mend();
    },
  },
  'API keys rotated': { run: rotateKeys },
  'Redis killed': {
    async run({ redis }) {
      await redis.kill();
      await pause(FAULT_MS);
      await redis.start();
    },
  },
  'both instances restarted': { restartsFirst: true, run: restartAll },
  'failover: the primary killed, its standby promoted': {
    excuses: DATABASE,
    run: ({ cluster }) => cluster.failOver(),
    // No excuse for what this costs.
    after: ({ cluster }) => cluster.addStandby(),
  },
  'an instance restarted': { run: ({ second }) => second.restart() },
  'the database restarted': { excuses: DATABASE, run: ({ cluster }) => cluster.restart() },
};

/** One instance after the other, with what changes in its settings. */
async function restartAll({ instances }, settings = {}) {
  for (const instance of instances) {
    Object.assign(instance.environment, settings);
    await instance.restart();
  }
}

/** What `pua doctor` names that would not survive the end of SECRET_KEY_PREVIOUS, but for sign-ins that nobody knows of any more. */
async function needingPrevious({ pua }) {
  const { checks } = JSON.parse(await pua('doctor', '--json'));
  return checks
    .filter(
      ({ name, status, message, mend }) =>
        status !== 'ok' && name !== 'sign-ins' && /SECRET_KEY/.test(message + mend),
    )
    .map(({ name, message }) => `${name}: ${message}`);
}

/** A member's key and the platform's: callers take the new one at once, others go on with the old one for a while. */
async function rotateKeys(machines, traffic) {
  const { pua, keys } = machines;
  const rotate = async (key) =>
    (await pua('keys', 'rotate', idOf(key), '--overlap', `${OVERLAP_SECONDS}s`)).trim();
  const member = 1 + Math.floor(Math.random() * MEMBERS);
  const old = keys[member - 1];
  keys[member - 1] = await rotate(old);
  machines.platformKey = await rotate(machines.platformKey);
  await traffic.send('rotated key', '/api/public/me', { headers: { 'X-API-Key': keys[member - 1] } });
  await pause((OVERLAP_SECONDS + 1) * 1000);
  await traffic.send('key that was replaced', '/api/public/me', {
    headers: { 'X-API-Key': old },
    expected: (status) => status === 401,
  });
}

/** The id within an API key: `<prefix>_<environment>_<id>_<secret>`. */
const idOf = (key) => key.split('_').at(-2);

/** Does one act after the other, each when its time has come; the programme is over when all are done that were begun. */
export class Programme {
  /** @type {{name: string, from: number, to: number, settled: number, excuses: string[]}[]} in ms since the start; the last may still last */
  done = [];
  #running = Promise.resolve();
  #begun = 0;

  constructor(machines, now) {
    Object.assign(this, { machines, now });
  }

  /** The name of the act that goes on, or has just ended; '' if none. */
  get current() {
    const last = this.done.at(-1);
    return last && this.now() < last.settled + AFTERMATH_MS ? last.name : '';
  }

  /** What acts between these times excuse. */
  excused(from, to) {
    const excuses = this.done
      .filter((act) => from <= act.to + AFTERMATH_MS && to >= act.from)
      .flatMap(({ excuses }) => excuses);
    return new Set(excuses);
  }

  /** Begins the next act as soon as the one before has ended: each once, and from then on those that do not restart the first instance. */
  next() {
    const names = Object.keys(ACTS);
    const again = names.filter((name) => !ACTS[name].restartsFirst);
    const name = names[this.#begun] ?? again[(this.#begun - names.length) % again.length];
    this.#begun++;
    this.#running = this.#running.then(() => this.#perform(name));
  }

  async #perform(name) {
    await pause(AFTERMATH_MS);
    const { run, after, excuses = [] } = ACTS[name];
    const act = { name, from: this.now(), to: Infinity, settled: Infinity, excuses };
    this.done.push(act);
    try {
      await run(this.machines, this.traffic);
      act.to = this.now();
      await after?.(this.machines);
    } catch (error) {
      this.traffic.failures.push({
        what: name,
        status: 'the act failed',
        at: Math.round(act.from / 1000),
        text: String(error.stack),
      });
    }
    act.to = Math.min(act.to, this.now());
    act.settled = this.now();
    const { counts, failures } = this.traffic;
    console.error(`${(act.from / 60_000).toFixed(1)} min: ${name}, ${((act.to - act.from) / 1000).toFixed(1)} s; ${JSON.stringify(counts.statuses)}; ${failures.length} failures${failures.length > 0 ? `, ${JSON.stringify(failures.at(-1))}` : ''}`); // prettier-ignore
  }

  /** Resolves when all acts that were begun have ended. */
  async end() {
    await this.#running;
  }

  /** When the first instance was started for the last time, in ms. */
  get firstSince() {
    return Math.max(0, ...this.done.filter(({ name }) => ACTS[name].restartsFirst).map(({ to }) => to));
  }
}
