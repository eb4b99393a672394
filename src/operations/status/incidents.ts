import type { DataSource } from 'typeorm';
import { audited, recordEvent } from '../../audit/audit.js';
import type { Incident, IncidentState } from '../../database/schema/entities/status.entity.js';
import { OperatorError } from '../../values/operator-error.js';

/** An incident as it is shown, with times in the API’s form. */
export type ShownIncident = Pick<Incident, 'id' | 'title' | 'state' | 'updates'> &
  Readonly<Record<'started_at' | 'updated_at', string>>;

/** SQL: the incidents of 90 days, those that go on first, then the newest first. */
export const INCIDENTS = `SELECT id, title, state, updates, api_time(started_at) AS started_at, api_time(updated_at) AS updated_at
FROM incidents WHERE state <> 'resolved' OR updated_at > now() - interval '90 days'
ORDER BY state = 'resolved', incidents.started_at DESC LIMIT 100`;

const UPDATE = `jsonb_build_object('at', api_time(now()), 'state', $1::text, 'body', $2::text)`;

interface Said {
  readonly state: IncidentState;
  readonly body: string | undefined;
}

/** Tells everybody of an incident. @returns its id */
export function postIncident(
  dataSource: DataSource,
  { title, state, body }: Said & { title: string },
): Promise<number> {
  return audited(dataSource, async (manager) => {
    const [row] = await manager.query<{ id: number }[]>(
      `INSERT INTO incidents (title, state, updates) VALUES ($3, $1, jsonb_build_array(${UPDATE})) RETURNING id`,
      [state, body ?? null, title],
    );
    const { id } = row!;
    await recordEvent(manager, { type: 'incident.posted', actor: 'admin', details: { incident: id, state } });
    return id;
  });
}

/** Adds what is known now. @throws OperatorError where there is no such incident */
export function updateIncident(dataSource: DataSource, id: number, { state, body }: Said): Promise<void> {
  return audited(dataSource, async (manager) => {
    const [, changed] = await manager.query<[unknown, number]>(
      `UPDATE incidents SET state = $1, updates = updates || ${UPDATE}, updated_at = now() WHERE id = $3`,
      [state, body ?? null, id],
    );
    if (changed === 0) throw new OperatorError(`There is no incident ${id}: \`pua status list\` shows all`);
    await recordEvent(manager, {
      type: 'incident.updated',
      actor: 'admin',
      details: { incident: id, state },
    });
  });
}
