// A responder that costs next to nothing: `node bench/canned.mjs BYTES` answers every request on a port of its choice, which it prints,
// with a body of so many bytes. What a load generator measures against it is the generator's own noise, and the machine's.
import { createServer } from 'node:net';

const body = 'x'.repeat(Number(process.argv[2] ?? 500));
const response = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
);
const END = '\r\n\r\n';

createServer((socket) => {
  let tail = '';
  socket.setNoDelay(true).setEncoding('latin1');
  socket.on('error', () => undefined);
  socket.on('data', (text) => {
    const all = tail + text;
    let from = 0;
    for (let at = all.indexOf(END); at !== -1; at = all.indexOf(END, from)) {
      from = at + END.length;
      socket.write(response);
    }
    tail = all.slice(Math.max(from, all.length - END.length + 1));
  });
}).listen(0, '127.0.0.1', function () {
  process.stdout.write(`${this.address().port}\n`);
});
