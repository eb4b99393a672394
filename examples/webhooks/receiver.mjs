// A webhook endpoint: verifies each message, responds, then does the work. Needs only Node.
//
//   WEBHOOK_SECRET=<of pua webhooks create> PORT=8080 node examples/webhooks/receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const TOLERANCE_SECONDS = 300;

/** Verifies the raw body as the Standard Webhooks libraries do. */
export function isGenuine(secret, headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < TOLERANCE_SECONDS)) return false; // too old: possibly replayed
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  return signatures.split(' ').some((signature) => {
    const [version, code] = signature.split(',');
    const given = Buffer.from(code ?? '', 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** Calls `take` once for each message; resolves when the server listens. */
export async function receive(port, secrets, take) {
  const seen = new Set(); // store ids in your database if restarts matter
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (!secrets.some((secret) => isGenuine(secret, request.headers, body))) {
      response.writeHead(401).end();
      return;
    }
    response.writeHead(204).end(); // respond first, then work
    const id = request.headers['webhook-id'];
    if (seen.has(id)) return; // duplicate
    seen.add(id);
    take(JSON.parse(body));
  });
  await new Promise((resolve) => server.listen(port, resolve));
  return server;
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) {
  const port = Number(process.env.PORT ?? 8080);
  // For example: read GET /api/public/<resource>/<id> with the member's credential.
  await receive(port, [process.env.WEBHOOK_SECRET], ({ type, data }) => console.log(type, data));
  console.log(`listening on ${port}`);
}
