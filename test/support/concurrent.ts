/** Starts the same work several times at once. @returns the results, in the order of the starts */
export function atOnce<Result>(
  times: number,
  work: (index: number) => Promise<Result> | Result,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => work(index)));
}

/** The number of each value, such as `{ 200: 1, 410: 19 }`. */
export function tally(values: readonly (string | number)[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(values, String)].map(([value, all]) => [value, all.length]));
}
