import type { IncomingMessage } from 'node:http';

/** Finds the raw values of the cookies with this name. There may be several: a sibling host can set one, too. */
export function cookiesNamed(request: IncomingMessage, name: string): string[] {
  return (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}
