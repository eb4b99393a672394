/** See pgbouncer.mjs. */
export function startPgbouncer(
  databaseUrl: string,
  settings?: Record<string, string | number>,
): Promise<{ url: string; pid: number; stop: () => Promise<void> }>;
