/** Makes a value when it is first asked for, and keeps it. A failure is not kept: the next caller tries again. */
export function lazily<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined;
  return () =>
    (value ??= make().catch((error: unknown) => {
      value = undefined;
      throw error;
    }));
}
