// What every program here is told, and how it tells what it did: where the member signs in, then what they have on this week, then (some)
// that it changed their bio, then that it is rejected once its access has ended.
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

/** A call of the tool that changes the member's bio. */
export const WRITE = { name: 'update_profile', arguments: { bio: 'Here for the hikes' } };

/** Prints what was found and, if it writes, what came of that, waits until the access has ended, and calls again. */
export async function done(tools, answer, again, write) {
  const textOf = ({ content }) => JSON.parse(content[0].text);
  const titles = textOf(answer).data.map(({ title }) => title);
  console.log(JSON.stringify({ tools: tools.map(({ name }) => name), titles }));
  if (write) console.log(JSON.stringify({ bio: textOf(await write()).profile.bio }));
  await input.next();
  await again().then(
    () => console.log(JSON.stringify({ refused: false })),
    (error) => console.log(JSON.stringify({ refused: String(error) })),
  );
  process.exit();
}
