/** See postgres.mjs. */
export function startPostgres(
  folder: string,
  settings: Record<string, string | number>,
  primary?: string,
): Promise<{ url: string; pid: number; stop: () => Promise<void> }>;

export function postgresUser(): { uid?: number; gid?: number };
