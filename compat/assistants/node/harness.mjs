// Shared input and reports, one line each: the sign-in URL, the member's week, the changed bio, the text at the write limit with the
// week afterwards, and the error once its access has ended.
import { createInterface } from 'node:readline';

/** SCOPE: the scope to request at the first sign-in; empty for the scopes of the challenge. */
export const { ADDRESS, CLIENT, REDIRECT_URI, SCOPE } = process.env;

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Prints the sign-in URL. @returns the URL with which the member returned */
export async function signIn(url) {
  console.log(String(url));
  return new URL((await input.next()).value);
}

const day = (offset) => new Date(Date.now() + offset * 86_400_000).toISOString();
/** A call of the tool that lists the events of the next seven days. */
export const WEEK = {
  name: 'list_events',
  arguments: { sort: 'starts_at', starts_after: day(0), starts_before: day(7) },
};

/** A call of the tool that changes the member's bio. */
export const WRITE = { name: 'update_profile', arguments: { bio: 'Here for the hikes' } };

/** Prints the results, writes until the limit, reads again, and makes one call after access has ended. */
export async function done(tools, answer, call) {
  const textOf = ({ content }) => content[0].text;
  const shown = (tool) => call(tool).then(textOf, String);
  const say = (found) => console.log(JSON.stringify(found));
  say({ tools: tools.map(({ name }) => name), week: textOf(answer) });
  let written = await shown(WRITE);
  say({ written });
  while (written.includes('"profile":')) written = await shown(WRITE);
  say({ limited: written, week: await shown(WEEK) });
  for (let line; !line?.done && line?.value !== 'ended';) line = await input.next();
  say({ refused: await shown(WEEK) });
  process.exit();
}
