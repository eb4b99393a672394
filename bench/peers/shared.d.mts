export const DATABASE_URL: string | undefined;
export const PORT: string | undefined;
export const POOL_SIZE: number;
export function readKey(key: unknown): { id: string; hash: Buffer } | undefined;
export function time(date: Date | null): string | null;
export function paginate<Row>(
  rows: readonly Row[],
  limit: number,
  total: number,
  sort: string,
  place: (row: Row) => unknown[],
): object;
export function percentage(part: number, whole: number): number;
export function rarityOf(earners: number, active: number): string;
