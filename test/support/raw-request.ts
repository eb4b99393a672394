import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

/** Sends a path and headers unchanged, which fetch would normalize or reject. */
export async function rawRequest(
  origin: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
) {
  const length = body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  const sent = request(origin, { method, path, headers: { ...headers, ...length } });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode!, headers: answer.headers, text: await text(answer) };
}
