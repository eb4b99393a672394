const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/**
 * Reads a duration: a whole number followed by s, m, h or d, such as `90d`.
 *
 * @returns seconds; undefined if it is not one
 */
export function secondsOf(text: string): number | undefined {
  const match = /^(\d{1,9})([smhd])$/.exec(text);
  return match ? Number(match[1]) * UNITS[match[2] as keyof typeof UNITS] : undefined;
}
