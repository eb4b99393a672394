// A receiver of webhooks: verifies what comes, answers at once, and works afterwards. Node alone, no dependencies.
//
//   WEBHOOK_SECRET=<of pua webhooks create> PORT=8080 node examples/webhooks/receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const secret = Buffer.from(process.env.WEBHOOK_SECRET.replace('whsec_', ''), 'base64');
const TOLERANCE_SECONDS = 300;

/** As the libraries of Standard Webhooks do it: of the bytes that came, before anything reads them. */
function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < TOLERANCE_SECONDS)) return false; // an old one, sent again
  const expected = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest();
  return signatures.split(' ').some((signature) => {
    const [version, code] = signature.split(',');
    const given = Buffer.from(code ?? '', 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

const seen = new Set(); // where a restart matters, in your database

createServer(async (request, response) => {
  const body = await text(request);
  if (!isGenuine(request.headers, body)) {
    response.writeHead(401).end();
    return;
  }
  response.writeHead(204).end(); // at once: the work is done afterwards
  const id = request.headers['webhook-id'];
  if (seen.has(id)) return; // it came before
  seen.add(id);
  const { type, data } = JSON.parse(body);
  console.log(type, data); // for example: read GET /api/public/<resource>/<id> with the credential of the member
}).listen(Number(process.env.PORT ?? 8080), function () {
  console.log(`listening on ${this.address().port}`);
});
