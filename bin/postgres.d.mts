/** Returns a free port, and never the same port twice. */
export function freePort(): Promise<number>;

/** See postgres.mjs. */
export function startPostgres(
  folder: string,
  settings: Record<string, string | number>,
  primary?: string,
): Promise<{ url: string; pid: number; stop: (signal?: NodeJS.Signals) => Promise<void> }>;

/** Sends a signal to all processes of the PostgreSQL whose main process has this id. */
export function signalPostgres(postmaster: number, signal: NodeJS.Signals): void;

/** The folder with the programs of the newest PostgreSQL that is installed. */
export function findBinaries(): string;

/** The user that runs PostgreSQL; empty if this process is not root. */
export function postgresUser(): { uid?: number; gid?: number };
