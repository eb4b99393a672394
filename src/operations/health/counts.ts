import type { DataSource } from 'typeorm';

export interface Counts {
  /** Members that are not erased. */
  readonly members: number;
  readonly members_disabled: number;
  readonly apps: number;
  readonly apps_disabled: number;
  /** Keys that are neither revoked nor expired. */
  readonly keys: number;
  /** Those of the {@link keys} that expire within 30 days and have no successor. */
  readonly keys_expiring: number;
  /** Enabled webhook endpoints. */
  readonly webhooks: number;
  /** Enabled webhook endpoints that have accepted no message since a failed attempt. */
  readonly webhooks_failing: number;
  readonly messages_due: number;
}

const COUNTS = `SELECT * FROM
  (SELECT count(*)::integer AS members, count(disabled_at)::integer AS members_disabled FROM users WHERE erased_at IS NULL) u,
  (SELECT count(*)::integer AS apps, count(disabled_at)::integer AS apps_disabled FROM oauth_clients) c,
  (SELECT count(*)::integer AS keys,
    (count(*) FILTER (WHERE expires_at < now() + interval '30 days' AND replaced_by IS NULL))::integer AS keys_expiring
    FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())) k,
  (SELECT count(*)::integer AS webhooks, count(failing_since)::integer AS webhooks_failing
    FROM webhook_endpoints WHERE disabled_at IS NULL) w,
  (SELECT count(*)::integer AS messages_due FROM webhook_deliveries WHERE status = 'pending' AND due_at <= now()) m`;

/** Reads all counts in one statement, which scans the members. */
export async function readCounts(dataSource: DataSource): Promise<Counts> {
  const [counts] = await dataSource.query<Counts[]>(COUNTS);
  return counts!;
}
