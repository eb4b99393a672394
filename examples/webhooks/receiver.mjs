// A receiver of webhooks: verifies what comes, answers at once, and works afterwards. Node alone, no dependencies.
//
//   WEBHOOK_SECRET=<of pua webhooks create> PORT=8080 node examples/webhooks/receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const TOLERANCE_SECONDS = 300;

/** As the libraries of Standard Webhooks do it: of the bytes that came, before anything reads them. */
export function isGenuine(secret, headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < TOLERANCE_SECONDS)) return false; // an old one, sent again
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  return signatures.split(' ').some((signature) => {
    const [version, code] = signature.split(',');
    const given = Buffer.from(code ?? '', 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** Calls `take` with each message, once; resolves when it listens. */
export async function receive(port, secrets, take) {
  const seen = new Set(); // where a restart matters, in your database
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (!secrets.some((secret) => isGenuine(secret, request.headers, body))) {
      response.writeHead(401).end();
      return;
    }
    response.writeHead(204).end(); // at once: the work is done afterwards
    const id = request.headers['webhook-id'];
    if (seen.has(id)) return; // it came before
    seen.add(id);
    take(JSON.parse(body));
  });
  await new Promise((resolve) => server.listen(port, resolve));
  return server;
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) {
  const port = Number(process.env.PORT ?? 8080);
  // For example: read GET /api/public/<resource>/<id> with the credential of the member.
  await receive(port, [process.env.WEBHOOK_SECRET], ({ type, data }) => console.log(type, data));
  console.log(`listening on ${port}`);
}
