// The client that signs members in, registered at every authorization server of the benchmark.
import { createHash, randomBytes } from 'node:crypto';
import { Agent, request as httpRequest } from 'node:http';

export const CLIENT_ID = 'bench';
export const REDIRECT_URI = 'https://app.example/callback';
export const SCOPE = 'openid profile:read events:read connections:read achievements:read';

const verifier = randomBytes(32).toString('base64url');
const challenge = createHash('sha256').update(verifier).digest('base64url');

/** An authorization request with PKCE. */
export const AUTHORIZE = `/oauth/authorize?${new URLSearchParams({
  client_id: CLIENT_ID,
  response_type: 'code',
  redirect_uri: REDIRECT_URI,
  scope: SCOPE,
  code_challenge: challenge,
  code_challenge_method: 'S256',
})}`;

/** Closes idle connections before a server does, so that no request meets a closing connection. */
const agent = new Agent({ keepAlive: true, timeout: 5_000 });

/** @returns {Promise<{status: number, headers: import('node:http').IncomingHttpHeaders, body: string}>} */
export function send(url, { method = 'GET', headers = {}, form, localAddress } = {}) {
  const body = form && new URLSearchParams(form).toString();
  const type = body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const options = { agent, method, headers: { ...headers, ...type }, localAddress };
    const request = httpRequest(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: text }),
      );
    });
    request.on('error', reject).end(body);
  });
}

/** A minimal browser with cookies, for signing in. */
export class Browser {
  #cookies = new Map();

  #send;

  /**
   * @param {{name: string, url: string}} server
   * @param {typeof send} [by] sends its requests
   */
  constructor(server, by = send) {
    this.server = server;
    this.#send = by;
  }

  /** Signs in and consents to all scopes, if required. @returns the code */
  async authorize({ username, password } = {}) {
    let path = AUTHORIZE;
    let form;
    for (let step = 0; step < 12; step++) {
      const { status, headers, body } = await this.open(path, form);
      form = undefined;
      const location = headers.location ?? refreshOf(body);
      if (location?.startsWith(REDIRECT_URI)) {
        const code = new URL(location).searchParams.get('code');
        if (code === null) throw new Error(`${this.server.name}: ${location}`);
        return code;
      }
      if (location !== undefined) {
        path = location.replace(/^https?:\/\/[^/]+/, '');
      } else if (status === 200 && username !== undefined) {
        ({ path, form } = fill(body, { username, login: username, password }));
      } else {
        throw refused(status, `${this.server.name} answers ${status} to ${path}: ${body.slice(0, 300)}`);
      }
    }
    throw new Error(`${this.server.name}: the sign-in does not end`);
  }

  /** The Cookie header for a request to the path; '' if none. */
  cookiesAt(path) {
    return [...this.#cookies.values()]
      .filter((cookie) => path.startsWith(cookie.path))
      .map(({ pair }) => pair)
      .join('; ');
  }

  /** Opens a page, or posts a form to it. */
  async open(path, form) {
    const cookie = this.cookiesAt(path);
    const answer = await this.#send(this.server.url + path, {
      method: form ? 'POST' : 'GET',
      headers: { Accept: 'text/html', ...(cookie ? { Cookie: cookie } : {}) },
      form,
    });
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [pair] = line.split(';');
      const name = pair.slice(0, pair.indexOf('='));
      const at = /; path=([^;]+)/i.exec(line)?.[1] ?? '/';
      if (/expires=Thu, 01 Jan 1970/i.test(line)) this.#cookies.delete(name + at);
      else this.#cookies.set(name + at, { pair, path: at });
    }
    return answer;
  }
}

/** The URL to which a page redirects at once. */
const refreshOf = (html) =>
  /http-equiv="refresh" content="0;url=([^"]*)"/.exec(html)?.[1].replaceAll('&amp;', '&');

/** The first form of a page, with everything ticked and the last button pressed. */
const fill = (html, typed) => formsOf(html, typed)[0];

/** The forms of a page, filled in the same way. @returns {{path: string, form: [name: string, value: string][]}[]} */
export function formsOf(html, typed = {}) {
  const forms = html.matchAll(/<form[^>]*?action="([^"]*)"[\s\S]*?<\/form>/g);
  return [...forms].map(([form, action]) => fillForm(form, action, typed));
}

function fillForm(form, action, typed) {
  const fields = [];
  for (const [tag] of form.matchAll(/<(?:input|button)[^>]*>/g)) {
    const attribute = (name) => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
    const name = attribute('name');
    const isLeft = attribute('type') === 'radio' && !/\schecked/.test(tag);
    if (name === undefined || isLeft || /\sdisabled/.test(tag)) continue;
    fields.push([name, typed[name] ?? attribute('value') ?? '']);
  }
  // Of several buttons with one name, only the pressed one is sent.
  const decisions = fields.filter(([name]) => name === 'decision');
  const sent = fields.filter((field) => field[0] !== 'decision' || field === decisions.at(-1));
  return { path: action.replaceAll('&amp;', '&').replace(/^https?:\/\/[^/]+/, ''), form: sent };
}

/** Redeems a code. @returns {Promise<{access_token: string, refresh_token: string}>} */
export function exchange(server, code) {
  return token(server, exchangeForm(code));
}

export function refresh(server, refreshToken) {
  return token(server, refreshForm(refreshToken));
}

/** The form posted to the token endpoint. */
export const exchangeForm = (code) => ({
  client_id: CLIENT_ID,
  grant_type: 'authorization_code',
  code,
  code_verifier: verifier,
  redirect_uri: REDIRECT_URI,
});
export const refreshForm = (refreshToken) => ({
  client_id: CLIENT_ID,
  grant_type: 'refresh_token',
  refresh_token: refreshToken,
});

async function token(server, form) {
  const { status, body } = await send(`${server.url}/oauth/token`, { method: 'POST', form });
  if (status !== 200)
    throw refused(status, `${server.name} answers ${status} at the token endpoint: ${body}`);
  return JSON.parse(body);
}

/** An error with the status of the response. */
function refused(status, message) {
  return Object.assign(new Error(message), { status });
}
