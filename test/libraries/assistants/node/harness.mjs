// What every program here is told, and how it tells what it did: where the member signs in, then what they have on this week, then that
// it is refused once its access has ended.
import { createInterface } from 'node:readline';

export const { ADDRESS, CLIENT, REDIRECT_URI } = process.env;

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Prints where the member signs in. @returns the address at which they came back */
export async function signIn(url) {
  console.log(String(url));
  return new URL((await input.next()).value);
}

const day = (offset) => new Date(Date.now() + offset * 86_400_000).toISOString();
/** A call of the tool that says what there is in the next seven days. */
export const WEEK = {
  name: 'list_events',
  arguments: { sort: 'starts_at', starts_after: day(0), starts_before: day(7) },
};

/** Prints what was found, waits until the access has ended, and calls again. */
export async function done(tools, { structuredContent }, again) {
  const titles = structuredContent.data.map(({ title }) => title);
  console.log(JSON.stringify({ tools: tools.map(({ name }) => name), titles }));
  await input.next();
  await again().then(
    () => console.log(JSON.stringify({ refused: false })),
    (error) => console.log(JSON.stringify({ refused: String(error) })),
  );
  process.exit();
}
