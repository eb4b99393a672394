// The least that a call of a tool can cost with the protocol's own SDK: answers GET with a page of events, and POST with the same as the
// result of a tool. Nothing else: no credential, no database, no framework.
import '../own-node.mjs';
import { createServer } from 'node:http';
import { PerRequestHTTPServerTransport, Server } from '@modelcontextprotocol/server';

const [, , page, revision] = process.argv;
const classification = { era: 'modern', revision };
const waiting = new Map();
let lastId = 0;

const server = new Server(
  { name: 'peer', version: '1.0.0' },
  { capabilities: { tools: {} }, supportedProtocolVersions: [revision] },
);
server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: page }] }));
const transport = new PerRequestHTTPServerTransport({ classification });
transport.send = (message) => {
  waiting.get(message.id)(message);
  waiting.delete(message.id);
  return Promise.resolve();
};
await server.connect(transport);

const answerWith = (response, text) => {
  const bytes = Buffer.from(text);
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': bytes.length }).end(bytes);
};

createServer((request, response) => {
  if (request.method === 'GET') return answerWith(response, page);
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const { id, ...message } = JSON.parse(Buffer.concat(chunks));
    const answer = await new Promise((resolve) => {
      waiting.set(++lastId, resolve);
      transport.onmessage({ ...message, id: lastId }, { classification });
    });
    answerWith(response, JSON.stringify({ ...answer, id }));
  });
}).listen(0, '127.0.0.1', function () {
  process.send(this.address().port);
});
