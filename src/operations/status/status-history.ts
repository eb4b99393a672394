import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Periodic } from '../../http/periodic-work.js';
import { timestampOf } from '../../values/timestamps.js';
import { DatabaseCheck } from '../health/database-check.js';
import { INCIDENTS, type ShownIncident } from './incidents.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const DAYS = 90;
const FAILED = -1;
/** Far beyond every deadline, and a smallint. */
const LONGEST_MS = 30_000;
/** Probes that failed while nothing could be written: a day of them. */
const MOST_UNWRITTEN = 1_440;

/** The first instance that writes has the minute: one that cannot reach the database says so later, if no other could. */
const WRITE = `INSERT INTO status_hours AS h (hour, latencies)
VALUES (date_trunc('hour', $1::timestamptz, 'UTC'),
  ARRAY(SELECT CASE WHEN n = $2::integer THEN $3::smallint END FROM generate_series(1, 60) n))
ON CONFLICT (hour) DO UPDATE SET latencies[$2::integer] = $3::smallint WHERE h.latencies[$2::integer] IS NULL`;

const percentile = (share: number, name: string) =>
  `percentile_disc(${share}) WITHIN GROUP (ORDER BY ms) FILTER (WHERE ms >= 0) AS ${name}`;

const READ = `SELECT to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS date, count(ms)::integer AS minutes,
  (count(*) FILTER (WHERE ms < 0))::integer AS failed_minutes, ${percentile(0.5, 'p50_ms')}, ${percentile(0.95, 'p95_ms')}
FROM status_hours, unnest(latencies) ms WHERE hour >= date_trunc('day', $1::timestamptz, 'UTC') GROUP BY 1`;

/** A day in UTC. */
interface StatusDay {
  readonly date: string;
  /** In which the status was probed: in the others, no instance was there. */
  readonly minutes: number;
  readonly failed_minutes: number;
  /** Percent; null where nothing was probed. */
  readonly availability: number | null;
  /** How long the database took to answer, in milliseconds; null where it never did. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

type Measured = Omit<StatusDay, 'availability'>;

/** What `/status` says. */
export interface Status {
  /** `unavailable`: this instance cannot serve now; `incident`: an operator says that something is wrong. */
  readonly status: 'operational' | 'incident' | 'unavailable';
  readonly checked_at: string;
  /** Of what follows: earlier than `checked_at` while the database cannot be read; null if it never was. */
  readonly known_at: string | null;
  /** Percent of the minutes that were probed in these days; null if none was. */
  readonly availability: number | null;
  /** 90 days, the oldest first. */
  readonly days: readonly StatusDay[];
  readonly incidents: readonly ShownIncident[];
}

/** Probes each minute whether this instance can serve, as `/readyz` says, and how soon the database answers; all instances write one history. */
@Injectable()
export class StatusHistory {
  readonly #unwritten: [at: Date, ms: number][] = [];
  /** Days in which something was measured, since the start of this process and 90 days before. */
  readonly #days = new Map<string, Measured>();
  #known: Pick<Status, 'known_at' | 'days' | 'incidents'> = { known_at: null, days: [], incidents: [] };

  constructor(
    private readonly database: Database,
    private readonly check: DatabaseCheck,
  ) {}

  @Periodic({ work: 'status', everyMs: MINUTE_MS, failure: 'the status could not be recorded', waits: true })
  async probe(): Promise<void> {
    const at = new Date();
    const startedAt = performance.now();
    const ms = await this.#canServe().then(
      (can) => (can ? Math.min(Math.round(performance.now() - startedAt), LONGEST_MS) : FAILED),
      () => FAILED,
    );
    this.#unwritten.push([at, ms]);
    if (this.#unwritten.length > MOST_UNWRITTEN) this.#unwritten.shift();
    for (let next; ms !== FAILED && (next = this.#unwritten[0]); this.#unwritten.shift())
      await this.database.prepared(WRITE, [next[0], next[0].getUTCMinutes() + 1, next[1]]);
  }

  /** Never fails: while the database cannot be read, it says what was known before. */
  async read(): Promise<Status> {
    const serves = await this.#canServe().catch(() => false);
    const now = new Date();
    if (serves) await this.#learn(now).catch(() => undefined);
    const { days, incidents } = this.#known;
    const isWrong = incidents.some(({ state }) => state !== 'resolved');
    return {
      status: serves ? (isWrong ? 'incident' : 'operational') : 'unavailable',
      checked_at: timestampOf(now),
      ...this.#known,
      availability: availabilityOf(days),
    };
  }

  async #canServe(): Promise<boolean> {
    await this.database.prepared('SELECT 1', []);
    const { writable, mismatch } = await this.check.read();
    return writable && mismatch === undefined;
  }

  async #learn(now: Date): Promise<void> {
    const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS);
    // An instance may have found out yesterday what it could write today; the days before do not change.
    const since = daysAgo(this.#days.size === 0 ? DAYS - 1 : 1);
    for (const day of await this.database.prepared<Measured>(READ, [since])) this.#days.set(day.date, day);
    const incidents = await this.database.prepared<ShownIncident>(INCIDENTS, []);
    const days = Array.from({ length: DAYS }, (_, i): StatusDay => {
      const date = timestampOf(daysAgo(DAYS - 1 - i)).slice(0, 10);
      const none = { date, minutes: 0, failed_minutes: 0, p50_ms: null, p95_ms: null };
      const day = this.#days.get(date) ?? none;
      return { ...day, availability: availabilityOf([day]) };
    });
    this.#known = { known_at: timestampOf(now), days, incidents };
  }
}

/** Percent with two decimals, rounded down: 100 only where nothing failed. */
function availabilityOf(days: readonly Pick<StatusDay, 'minutes' | 'failed_minutes'>[]): number | null {
  const minutes = days.reduce((sum, day) => sum + day.minutes, 0);
  const failed = days.reduce((sum, day) => sum + day.failed_minutes, 0);
  return minutes === 0 ? null : Math.floor(((minutes - failed) / minutes) * 10_000) / 100;
}
