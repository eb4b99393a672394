import { Entity } from 'typeorm';
import { identity, jsonb, row, smallint, text, timestamptz } from '../columns.js';
import { Expires } from '../declarations.js';

/** An hour of probes, one a minute by whichever instance is the first: see `StatusHistory`. */
@Entity('status_hours')
@Expires({ at: 'hour', kept: '90 days' })
export class StatusHour extends row({
  hour: timestamptz.primary,
  /** Milliseconds of each minute’s probe; -1: it failed; NULL: no instance was there. */
  latencies: smallint.array,
}) {}

export const INCIDENT_STATES = ['investigating', 'identified', 'monitoring', 'resolved'] as const;
export type IncidentState = (typeof INCIDENT_STATES)[number];

/** What an operator says about an incident, for everybody to read. */
@Entity('incidents')
@Expires({ at: 'updated_at', kept: '90 days', only: `state = 'resolved'` })
export class Incident extends row({
  id: identity('ALWAYS'),
  title: text,
  state: text.as<IncidentState>(),
  /** The oldest first. */
  updates: jsonb.as<readonly { at: string; state: IncidentState; body: string | null }[]>(),
  started_at: timestamptz.sqlDefault('now()'),
  updated_at: timestamptz.sqlDefault('now()'),
}) {}
