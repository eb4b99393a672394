/** Minutes since 1970: the window that limits count in, on this machine's one clock. */
const minute = () => Math.floor(Date.now() / 60_000);

let addresses = 0;

/** An address from which nobody has called in this file (RFC 2544's, which are for tests). */
export function freshAddress(): string {
  addresses++;
  return `198.18.${addresses >> 8}.${addresses & 255}`;
}

/**
 * A test of what happens within one window: where the window ended in the middle and it failed, it runs again. So it begins
 * with members, keys and addresses ({@link freshAddress}) of its own: what the first run used in the new window counts there.
 */
export function inOneWindow<Values extends unknown[]>(
  scenario: (...values: Values) => Promise<void>,
): (...values: Values) => Promise<void> {
  return async (...values) => {
    const begun = minute();
    try {
      await scenario(...values);
    } catch (error) {
      if (minute() === begun) throw error;
      await scenario(...values);
    }
  };
}
