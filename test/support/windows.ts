/** Minutes since 1970: the window that limits count in, on this machine's one clock. */
const minute = () => Math.floor(Date.now() / 60_000);

/**
 * A test of what happens within one window: where the window ended in the middle and it failed, it runs again. So it begins
 * with members and keys of its own.
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
