import type { IncomingMessage } from 'node:http';

/** Finds what a browser sent under this name, as it stands: a neighbouring host may have added one. */
export function cookiesNamed(request: IncomingMessage, name: string): string[] {
  return (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}
