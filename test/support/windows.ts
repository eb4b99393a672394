import { it } from '@jest/globals';
import { thorough } from './database.js';

/** Minutes since 1970: the window of the limits, by this host's clock. */
const minute = () => Math.floor(Date.now() / 60_000);

let addresses = 0;

/** Returns an address not yet used in this file (from RFC 2544's range for tests). */
export function freshAddress(): string {
  addresses++;
  return `198.18.${addresses >> 8}.${addresses & 255}`;
}

/** Runs a test within one window, again if the window ended meanwhile: it must create its own members, keys and addresses ({@link freshAddress}). */
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

/** Declares a test that runs within one window. */
export const itInOneWindow = Object.assign(
  (title: string, scenario: () => Promise<void>) => it(title, inOneWindow(scenario)),
  { thorough: (title: string, scenario: () => Promise<void>) => thorough.it(title, inOneWindow(scenario)) },
);
