export function statistics(rows: readonly object[]): object;
