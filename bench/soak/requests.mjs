// Requests to the machines of the soak, and a record of those that fail.
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

/** Less than the server's Keep-Alive (timeout=65): a request on an idle connection that is just being closed is cut off. */
const IDLE_CONNECTION_MS = 60_000;

export class Requests {
  counts = { requests: 0, statuses: {}, kinds: {} };
  /** @type {{what: string, status: number | string, at: number, text: string}[]} responses that nothing excuses; `at` in seconds */
  failures = [];
  /** Those that were answered with 503 though nothing excuses it, and are sent again: `{what, during, at, text}`. */
  refused = [];
  /** Of requests since the last `takeWindow`, in ms. */
  #window = { calm: [], faulty: [] };
  #agent = new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS });

  /**
   * @param {Awaited<ReturnType<import('./machines.mjs').startMachines>>} machines
   * @param {() => number} now ms since the start
   * @param {{excused: (from: number, to: number) => Set<string>, current: string}} programme what acts between these times excuse
   * (`503`, `cut`), and the name of the one that goes on
   */
  constructor(machines, now, programme) {
    Object.assign(this, { machines, now, programme });
  }

  takeWindow() {
    const window = this.#window;
    this.#window = { calm: [], faulty: [] };
    return window;
  }

  close() {
    this.#agent.destroy();
  }

  fail(what, status, at, text) {
    this.failures.push({ what, status, at: Math.round(at / 1000), text: text.slice(0, 300) });
  }

  /**
   * Sends one request, and records its response if it is neither expected nor excused.
   *
   * @param {string} what
   * @param {string} path
   * @param {{server?: {url: string}, method?: string, headers?: object, body?: string, form?: object, due?: number, isStreamed?: boolean, expected?: (status: number | 'cut') => boolean}} request
   * @returns {Promise<{status: number | 'cut', headers: object, body: string}>} `cut` if the connection ended before the response
   */
  async send(what, path, request = {}, isAgain = false) {
    const { server = this.machines.balancer.next(), due, expected = (status) => status === 200 } = request;
    const from = due ?? this.now();
    const answer = await this.#exchange(server.url + path, request);
    const to = this.now();
    const { status } = answer;
    this.counts.requests++;
    this.counts.statuses[status] = (this.counts.statuses[status] ?? 0) + 1;
    this.counts.kinds[what] = (this.counts.kinds[what] ?? 0) + 1;
    const excused = this.programme.excused(from, to);
    this.#window[excused.size > 0 ? 'faulty' : 'calm'].push(to - from);
    // A response that is sent while it is read from the database has its status already: it is cut off in place of a 503.
    const meant = status === 'cut' && request.isStreamed ? '503' : String(status);
    if (expected(status) || excused.has(String(status)) || excused.has(meant)) return answer;
    if (status === 503 && !isAgain) {
      // An overloaded machine is allowed to say so; whoever comes back when it says is to be served.
      this.refused.push({
        what,
        during: this.programme.current,
        at: Math.round(from / 1000),
        text: answer.body.slice(-300),
      });
      await pause(1000 * Number(answer.headers['retry-after']));
      return this.send(what, path, { ...request, server: undefined, due: undefined }, true);
    }
    this.fail(what, status, from, answer.body);
    return answer;
  }

  #exchange(url, { method = 'GET', headers = {}, body, form }) {
    const payload = form ? new URLSearchParams(form).toString() : body;
    const type = form ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {};
    const length = payload === undefined ? {} : { 'Content-Length': Buffer.byteLength(payload) };
    return new Promise((resolve) => {
      const cut = (error) => resolve({ status: 'cut', headers: {}, body: String(error) });
      const options = { agent: this.#agent, method, headers: { ...type, ...length, ...headers } };
      const request = httpRequest(url, options, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode, headers: response.headers, body: text }),
        );
        response.on('error', cut);
      });
      request.on('error', cut).end(payload);
    });
  }

  /** Tries again until there is an answer; undefined after twenty seconds. */
  async insist(what, path, request) {
    for (let attempt = 0; attempt < 100; attempt++) {
      const answer = await this.send(what, path, attempt === 0 ? request : { ...request, due: undefined });
      if (answer.status !== 503 && answer.status !== 'cut') return answer;
      await pause(200);
    }
    return undefined;
  }
}
