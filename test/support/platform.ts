import type { DataSource } from 'typeorm';
import { ADVISORY_LOCKS } from '../../src/database/schema/advisory-locks.js';

type Fields = Record<string, unknown>;

/** Writes data as the platform would: members, events, participants, connections, achievements. */
export class Platform {
  #count = 0;

  constructor(private readonly dataSource: DataSource) {}

  async user(fields: Fields = {}): Promise<number> {
    return (await this.#insert('users', { username: `member${process.pid}_${++this.#count}`, ...fields }))
      .id as number;
  }

  /** Adds an event, by default scheduled, public and next year; its organizer becomes a participant only on request. */
  async event(fields: Fields = {}): Promise<number> {
    const organizer = fields.organizer_id ?? (await this.user());
    const row = await this.#insert('events', {
      title: `Event ${++this.#count}`,
      status: 'scheduled',
      visibility: 'public',
      starts_at: '2031-05-01T18:00:00Z',
      timezone: 'UTC',
      ...fields,
      organizer_id: organizer,
    });
    return row.id as number;
  }

  async participant(eventId: number, userId: number, fields: Fields = {}): Promise<void> {
    await this.#insert('participants', {
      event_id: eventId,
      user_id: userId,
      role: 'attendee',
      rsvp_status: fields.role === undefined || fields.role === 'attendee' ? 'going' : null,
      changed_in: null, // it is older than all reads of changes
      ...fields,
    });
  }

  /** Adds both sides of a connection that `requester` requested, by default accepted. */
  async connection(requester: number, addressee: number, fields: Fields = {}): Promise<number> {
    const status = (fields.status as string | undefined) ?? 'accepted';
    const connectedAt = status === 'accepted' ? (fields.connected_at ?? '2024-02-01T10:00:00Z') : null;
    const [row] = await this.dataSource.query<{ id: number }[]>(
      `WITH c AS (SELECT nextval('connections_id_seq') AS id)
       INSERT INTO connections (id, user_id, peer_id, status, source, met_at_event_id, requested_at, connected_at)
       SELECT c.id, s.user_id, s.peer_id, s.status, $4, $5, $6, $7 FROM c, (VALUES
         ($1::bigint, $2::bigint, CASE $3 WHEN 'accepted' THEN 'accepted' ELSE 'pending_sent' END),
         ($2, $1, CASE $3 WHEN 'accepted' THEN 'accepted' ELSE 'pending_received' END)) s (user_id, peer_id, status)
       RETURNING id`,
      [
        requester,
        addressee,
        status,
        fields.source ?? null,
        fields.met_at_event_id ?? null,
        fields.requested_at ?? '2024-01-01T10:00:00Z',
        connectedAt,
      ],
    );
    return row!.id;
  }

  async achievement(fields: Fields = {}): Promise<number> {
    const n = ++this.#count;
    const row = await this.#insert('achievements', {
      name: `Achievement ${n}`,
      key: `achievement_${n}`,
      category: 'events',
      points: 10,
      ...fields,
    });
    return row.id as number;
  }

  async progress(userId: number, achievementId: number, fields: Fields = {}): Promise<void> {
    await this.#insert('user_achievements', { user_id: userId, achievement_id: achievementId, ...fields });
  }

  /** Adds a passkey, with which nobody can sign in. */
  async passkey(userId: number, name: string): Promise<number> {
    const keys = {
      credential_id: Buffer.from(`${name}${userId}`),
      user_handle: '\\x01',
      public_key: '\\x01',
    };
    const flags = { sign_count: 0, backup_eligible: true, backed_up: true };
    return (await this.#insert('passkeys', { user_id: userId, name, ...keys, ...flags })).id as number;
  }

  /** Compacts counters, as every server does each second; waits for a server that is compacting. */
  async fold(): Promise<void> {
    await this.#alone(ADVISORY_LOCKS.foldTotals, 'SELECT fold_totals(1000000) AS steps');
  }

  /** Copies the names of renamed members, as every server does each second; waits for a server that is copying. */
  async copyNames(): Promise<void> {
    await this.#alone(ADVISORY_LOCKS.copyNames, 'SELECT copy_names(1000000) AS steps');
  }

  /** Copies names until all are final: when all transactions that may have read an old name have ended. */
  async settleNames(): Promise<void> {
    const left = () => this.dataSource.query<unknown[]>('SELECT FROM renamed_users');
    while ((await left()).length > 0) await this.copyNames();
  }

  /** Settles counters and names: no background work changes rows later because of earlier writes. */
  async settle(): Promise<void> {
    await this.fold();
    await this.settleNames();
  }

  /**
   * Waits until every transaction now in progress has ended, including those in other databases of the cluster: then their changes
   * are visible to readers of changes.
   */
  async settleChanges(): Promise<void> {
    const number = async (sql: string) =>
      (await this.dataSource.query<{ number: number }[]>(`SELECT ${sql}::text::bigint AS number`))[0]!.number;
    const now = await number('pg_current_xact_id()');
    while ((await number('pg_snapshot_xmin(pg_current_snapshot())')) <= now);
  }

  /** Lets the server notice a restore: its database then has another identity than the one that is stored. */
  async restore(): Promise<void> {
    await this.dataSource.query('SELECT take_change_mark()');
    await this.dataSource.query(`UPDATE change_places SET changed_in = 1 WHERE name = 'identity'`);
    await this.dataSource.query('SELECT take_change_mark()');
  }

  /** Coalesces changes, as every server does each second; waits for a server that is coalescing. */
  async coalesceChanges(): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.query(`SELECT FROM change_places WHERE name = 'coalesced' FOR UPDATE`);
      await manager.query('SELECT coalesce_changes(1000000)');
    });
  }

  /** Repeats the step until nothing is left to do. */
  async #alone(lock: number, step: string): Promise<void> {
    for (let steps = Infinity; steps > 0;) {
      steps = await this.dataSource.transaction(async (manager) => {
        await manager.query('SELECT pg_advisory_xact_lock($1)', [lock]);
        const [row] = await manager.query<{ steps: number }[]>(step);
        return row!.steps;
      });
    }
  }

  async #insert(table: string, fields: Fields): Promise<Fields> {
    const names = Object.keys(fields);
    const [row] = await this.dataSource.query<Fields[]>(
      `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')}) RETURNING *`,
      Object.values(fields),
    );
    return row!;
  }
}
