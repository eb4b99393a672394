import type { AuthEvent } from '../database/entities/auth-event.entity.js';

/** An event of the audit trail as it is recorded. Nothing in it may be secret. */
export interface NewAuthEvent {
  readonly type: string;
  readonly actor: AuthEvent['actor'];
  readonly userId?: number | null;
  readonly clientId?: string | null;
  readonly keyId?: string | null;
  readonly ip?: string | null;
  readonly errorId?: string | null;
  readonly details?: Record<string, unknown>;
}

export const RECORD_EVENT = `INSERT INTO auth_events (type, actor, user_id, client_id, key_id, ip, error_id, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;

/** Parameters of {@link RECORD_EVENT}. */
export function eventValues(event: NewAuthEvent): unknown[] {
  return [
    event.type,
    event.actor,
    event.userId ?? null,
    event.clientId ?? null,
    event.keyId ?? null,
    event.ip ?? null,
    event.errorId ?? null,
    JSON.stringify(event.details ?? {}),
  ];
}
