// An open-loop load generator, in its own process: a fixed rate of requests, as independent callers send them, even if the server is
// slower. Latency counts from when a request was due, so time spent waiting for a connection is included (no coordinated
// omission). With `rate` 0 the loop is closed: every connection sends its next request when it has its response.
//
// node open-loop.mjs PLAN, a JSON file (Plan below); writes Outcome as JSON to stdout. Loopback only, and bounded in time,
// connections and requests.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

/**
 * @typedef {object} Plan
 * @property {number} port of a server on 127.0.0.1
 * @property {string[]} requests in wire format, sent in turn
 * @property {number} rate requests a second; 0: closed loop
 * @property {number} seconds
 * @property {number} connections
 *
 * @typedef {object} Latencies
 * @property {number} count
 * @property {number} p50 ms
 * @property {number} p99 ms
 * @property {number} p999 ms; the longest of fewer than a thousand
 *
 * @typedef {object} Outcome
 * @property {number} seconds
 * @property {Latencies} answered with a status below 400
 * @property {Latencies} refused with 429 or 503
 * @property {number} failed with any other status, or cut off
 * @property {number} total responses, including those in the grace period, on which the CPU time until the end was spent
 */

/** Beyond these limits the generator would measure itself. */
const MAX_CONNECTIONS = 4_000;
const MAX_SECONDS = 120;
/** Grace period for requests in progress at the end. */
const GRACE_MS = 2_000;

/** @type {Plan} */
const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const connections = Math.min(plan.connections, MAX_CONNECTIONS);
const milliseconds = Math.min(plan.seconds, MAX_SECONDS) * 1000;
const requests = plan.requests.map((text) => Buffer.from(text, 'latin1'));

const answered = [];
const refused = [];
let failed = 0;
let sent = 0;
let ended = false;
/** Numbers of due requests and of requests with a connection. Storing each due time costs CPU at five times the peak. */
let dueSoFar = 0;
let taken = 0;
/** Due times of requests to send once more. */
const repeated = [];
const free = [];
let begun = 0;

const waits = () => repeated.length > 0 || taken < dueSoFar;
const nextDue = () => repeated.pop() ?? begun + (taken++ / plan.rate) * 1000;

class Connection {
  #socket;
  #text = '';
  /** Length of the complete response; 0 until its headers have arrived. */
  #length = 0;
  #due = 0;
  /** Whether part of the response has arrived. */
  #isAnswered = false;

  constructor() {
    this.#open();
  }

  #open() {
    this.#socket = connect(plan.port, '127.0.0.1');
    this.#socket.setNoDelay(true).setEncoding('latin1');
    this.#socket.on('data', (text) => this.#receive(text));
    this.#socket.on('error', () => undefined);
    this.#socket.on('connect', () => this.#next());
    this.#socket.on('close', () => {
      // The server closes idle connections: the generator repeats a request sent just then, as any client does.
      if (this.#due > 0 && !ended && !this.#isAnswered) repeated.push(this.#due);
      else if (this.#due > 0 && !ended) failed++;
      this.#due = 0;
      const at = free.indexOf(this);
      if (at !== -1) free.splice(at, 1);
      if (!ended) setTimeout(() => (ended ? undefined : this.#open()), 10);
    });
  }

  /** @param {number} due when it was due */
  send(due) {
    this.#due = due;
    this.#text = '';
    this.#isAnswered = false;
    this.#length = 0;
    this.#socket.write(requests[sent++ % requests.length]);
  }

  end() {
    this.#socket.destroy();
  }

  get isAsking() {
    return this.#due > 0;
  }

  #receive(text) {
    if (text.startsWith('HTTP/1.1 408 ')) return; // the server closes the connection with this response
    this.#isAnswered = true;
    this.#text = this.#text === '' ? text : this.#text + text;
    if (this.#length === 0) {
      const headers = this.#text.indexOf('\r\n\r\n');
      if (headers === -1) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(this.#text.slice(0, headers));
      this.#length = headers + 4 + Number(length?.[1] ?? 0);
    }
    if (this.#text.length < this.#length) return;
    const status = Number(this.#text.slice(9, 12));
    const milliseconds = performance.now() - this.#due;
    if (status < 400) answered.push(milliseconds);
    else if (status === 503 || status === 429) refused.push(milliseconds);
    else failed++;
    this.#due = 0;
    this.#next();
  }

  #next() {
    if (ended) return;
    if (waits()) this.send(nextDue());
    else if (plan.rate === 0 && begun > 0) this.send(performance.now());
    else free.push(this);
  }
}

/** @type {Connection[]} */
const all = [];
// Not all at once: after an overflow of the system's queue, connecting is retried after one, three, seven seconds.
while (free.length < connections) {
  if (free.length === all.length)
    for (let i = 0; i < 100 && all.length < connections; i++) all.push(new Connection());
  await new Promise((resolve) => setTimeout(resolve, 10));
}
begun = performance.now();
if (plan.rate === 0) for (const connection of free.splice(0)) connection.send(performance.now());
await new Promise((resolve) => {
  const turn = () => {
    const now = performance.now() - begun;
    if (now >= milliseconds) return resolve();
    dueSoFar = plan.rate && Math.floor((now / 1000) * plan.rate) + 1; // the first connection at once
    while (free.length > 0 && waits()) free.pop().send(nextDue());
    setTimeout(turn, 1);
  };
  turn();
});
const seconds = (performance.now() - begun) / 1000;
const counts = { answered: answered.length, refused: refused.length };
const grace = performance.now() + (plan.rate === 0 ? 0 : GRACE_MS);
while (performance.now() < grace && (waits() || all.some(({ isAsking }) => isAsking)))
  await new Promise((resolve) => setTimeout(resolve, 20));
ended = true;
for (const connection of all) connection.end();

/** @returns {Latencies} */
function latencies(list, count) {
  const sorted = Float64Array.from(list).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { count, p50: at(0.5), p99: at(0.99), p999: at(0.999) };
}

/** @type {Outcome} */
const outcome = {
  seconds,
  answered: latencies(answered, counts.answered),
  refused: latencies(refused, counts.refused),
  failed,
  total: answered.length,
};
process.stdout.write(JSON.stringify(outcome));
