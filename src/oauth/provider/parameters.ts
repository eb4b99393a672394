import type { IncomingMessage } from 'node:http';
import { parse } from 'node:querystring';
import type { Request } from 'express';
import { receiving } from '../../http/pipeline/request-context.js';
import { ROUTES } from './provider.js';

const BODY_LIMIT = 16_384;

/** The most parameters of a request, known or not: parsers, the library's among them, may take the square of their number. */
const MOST_PAIRS = 100;
const TOO_MANY = `there may be ${MOST_PAIRS} parameters at most`;

/** The most characters of a parameter that is not stored. */
const LONGEST = 2048;

/** Parameters of an authorization request, all of which the library stores until the member has signed in. */
const OF_AUTHORIZATION: Readonly<Record<string, number>> = {
  acr_values: 200,
  claims_locales: 100,
  client_id: 100,
  code_challenge: 128,
  code_challenge_method: 20,
  display: 20,
  dpop_jkt: 100,
  id_token_hint: LONGEST,
  login_hint: 100,
  max_age: 20,
  nonce: 512,
  prompt: 100,
  redirect_uri: LONGEST,
  registration: LONGEST,
  request: LONGEST,
  request_uri: 200,
  resource: LONGEST,
  response_mode: 50,
  response_type: 100,
  scope: 512,
  state: LONGEST,
  ui_locales: 100,
};

/** All of them together, in bytes of JSON: encrypted and encoded, a stored request stays under 8 KB. */
const LONGEST_REQUEST = 5120;

/** Other names are unknown, and ignored (RFC 6749 §3.1 and §3.2). */
const LIMITS: Readonly<Record<string, number>> = {
  ...OF_AUTHORIZATION,
  client_assertion: 8192,
  client_assertion_type: 100,
  client_secret: LONGEST,
  code: LONGEST,
  code_verifier: LONGEST,
  grant_type: 200,
  logout: 20,
  logout_hint: 100,
  post_logout_redirect_uri: LONGEST,
  refresh_token: LONGEST,
  token: LONGEST,
  token_type_hint: 100,
  xsrf: 200,
};

const NAMES = Object.keys(LIMITS);

/** What a request sent, and what is wrong with it. */
export interface Sent {
  /** The query, or the body of a form. */
  readonly text: string;
  /** For `error_description`; undefined where nothing is wrong. */
  readonly fault?: string | undefined;
  /** The library refuses it, by a redirect where it has verified the redirect URI: it does not see what is wrong. */
  readonly isPassedOn?: boolean;
}

/**
 * Reads the parameters of a request and checks them before any parser does: for more of them than a client sends, for text that the
 * database cannot store, and for more of it than a stored request may hold. Wrong ones are removed from the query of an authorization
 * request.
 */
export async function readParameters(request: Request): Promise<Sent> {
  const { path } = request.context;
  const isForm = request.method === 'POST';
  const start = request.url.indexOf('?');
  let text = start === -1 ? '' : request.url.slice(start + 1);
  if (hasTooMany(text)) return { text, fault: TOO_MANY };
  if (text === '' && !isForm) return { text };
  const query = new URLSearchParams(isForm ? '' : text); // as the library does: it drops another question mark
  let parameters: Parameters = (name) => query.getAll(name);
  if (isForm) {
    if (!request.is('application/x-www-form-urlencoded')) return { text: '' }; // the library refuses it
    if (!/^[^;]*(; *charset="?utf-8"? *)?$/i.test(request.headers['content-type']!))
      return { text: '', fault: 'the body must be in UTF-8' };
    const body = await receiving(request, () =>
      readAhead(request, (read) => withoutEmptyPassword(request, read)),
    );
    if (body === undefined) return { text: '', fault: `the body must have 1 to ${BODY_LIMIT} bytes` };
    text = body.toString();
    if (hasTooMany(text)) return { text, fault: TOO_MANY };
    parameters = ofForm(text);
  }
  const faults: Fault[] = [];
  for (const name of NAMES) {
    const fault = faultOf(name, parameters(name));
    if (fault) faults.push(fault);
  }
  const fault = faults[0]?.reason ?? faultOfWhole(path, parameters);
  const isPassedOn = path === ROUTES.authorization && !isForm;
  if (isPassedOn && faults.length > 0) {
    for (const { name } of faults) query.delete(name);
    request.url = `${path}?${query}`;
  }
  return { text, fault, isPassedOn };
}

/** Counted before anything is parsed. */
function hasTooMany(text: string): boolean {
  return text.split('&', MOST_PAIRS + 1).length > MOST_PAIRS;
}

/** All values of a parameter. */
type Parameters = (name: string) => readonly string[];
const NONE: readonly string[] = [];

/** Reads a form as the library does. */
function ofForm(text: string): Parameters {
  const form = parse(text);
  return (name) => {
    const values = form[name];
    return typeof values === 'string' ? [values] : (values ?? NONE);
  };
}

interface Fault {
  readonly name: string;
  readonly reason: string;
}

function faultOf(name: string, values: readonly string[]): Fault | undefined {
  for (const text of values) {
    // U+FFFD replaces what is not UTF-8.
    if (/[\p{Cc}\u{fffd}]/u.test(text) || !text.isWellFormed())
      return { name, reason: `${name} must be text in UTF-8 without control characters` };
    if (text.length > LIMITS[name]!)
      return { name, reason: `${name} must have at most ${LIMITS[name]} characters` };
  }
  return undefined;
}

function faultOfWhole(path: string, parameters: Parameters): string | undefined {
  if (path !== ROUTES.authorization && path !== ROUTES.pushed_authorization_request) return undefined;
  const stored = Object.keys(OF_AUTHORIZATION).map((name) => [name, parameters(name)] as const);
  const sent = stored.filter(([, values]) => values.length > 0);
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(sent)));
  return bytes > LONGEST_REQUEST ? 'the authorization request is too long' : undefined;
}

/** Events that may come without `readable`: an empty body ends, one that was cut off closes. */
const ENDS = ['end', 'close', 'error'] as const;

/**
 * Moves the id of a public client to `client_id`, where the library looks for it. OAuth libraries that know only HTTP Basic send the id
 * with an empty password (RFC 6749 §2.3.1 lets a client omit a secret that is the empty string).
 */
function withoutEmptyPassword({ headers }: IncomingMessage, body: Buffer): Buffer {
  const clientId = clientOfEmptyPassword(headers.authorization);
  if (clientId === undefined) return body;
  const named = ofForm(body.toString())('client_id');
  if (named.length > 0 && !(named.length === 1 && named[0] === clientId)) return body; // the library refuses it
  delete headers.authorization;
  if (named.length > 0) return body;
  const moved = Buffer.concat([body, Buffer.from(`&${new URLSearchParams({ client_id: clientId })}`)]);
  if (headers['content-length'] !== undefined) headers['content-length'] = String(moved.length);
  return moved;
}

/** Parses `Basic` with `id:`, both form-encoded (RFC 6749 §2.3.1). */
function clientOfEmptyPassword(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  const [, id] = /^([^:]+):$/.exec(Buffer.from(encoded ?? '', 'base64').toString()) ?? [];
  return id === undefined
    ? undefined
    : (new URLSearchParams(`id=${id.replaceAll('&', '%26')}`).get('id') ?? undefined);
}

/**
 * Reads the body and puts it back, so that the library reads it as it came.
 *
 * @param change of what is put back
 * @returns what was put back; undefined where it is empty, too long, or was not sent to its end
 */
function readAhead(request: IncomingMessage, change: (body: Buffer) => Buffer): Promise<Buffer | undefined> {
  if (request.readableEnded || request.destroyed) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const gone = () => end();
    const end = (body?: Buffer) => {
      request.off('readable', read);
      for (const event of ENDS) request.off(event, gone);
      resolve(body);
    };
    const read = () => {
      for (let chunk: Buffer | null; (chunk = request.read() as Buffer | null) !== null;) {
        size += chunk.length;
        chunks.push(chunk);
      }
      if (size > BODY_LIMIT) end();
      else if (request.complete) {
        const body = size > 0 ? change(Buffer.concat(chunks)) : Buffer.alloc(0);
        // At once: later the stream has ended, and takes nothing back.
        if (size > 0) request.unshift(body);
        end(size > 0 ? body : undefined);
      }
    };
    if (request.complete) {
      read(); // it has arrived, as nearly every form has by now
      return;
    }
    request.on('readable', read);
    for (const event of ENDS) request.on(event, gone);
  });
}
