import type { IncomingMessage } from 'node:http';
import { parse } from 'node:querystring';
import type { Request } from 'express';
import { receiving } from '../http/pipeline/request-context.js';
import { isStorable } from '../values/string-rules.js';
import { putBack } from './provider/library.js';
import { isForPrograms, ROUTES } from './provider/provider.js';

const BODY_LIMIT = 16_384;

/** Maximum parameters of a request: parsers, including the library's, may take quadratic time. */
const MAX_PARAMETERS = 100;
const TOO_MANY = `a request can have at most ${MAX_PARAMETERS} parameters`;

const MAX_LENGTH = 2048;

/** Parameters that the library stores until the member has signed in, with their maximum lengths in characters. */
const OF_AUTHORIZATION: Readonly<Record<string, number>> = {
  acr_values: 200,
  claims: MAX_LENGTH,
  claims_locales: 100,
  client_id: 100,
  code_challenge: 128,
  code_challenge_method: 20,
  display: 20,
  dpop_jkt: 100,
  id_token_hint: MAX_LENGTH,
  login_hint: 100,
  max_age: 20,
  nonce: 512,
  prompt: 100,
  redirect_uri: MAX_LENGTH,
  registration: MAX_LENGTH,
  request: MAX_LENGTH,
  request_uri: 200,
  resource: MAX_LENGTH,
  response_mode: 50,
  response_type: 100,
  scope: 512,
  state: MAX_LENGTH,
  ui_locales: 100,
};

/** Maximum size of these parameters together, in bytes of JSON. */
const MAX_REQUEST_BYTES = 5120;

/** Maximum lengths in characters by name; the server ignores other names (RFC 6749 §3.1 and §3.2). */
const LIMITS: Readonly<Record<string, number>> = {
  ...OF_AUTHORIZATION,
  client_assertion: 8192,
  client_assertion_type: 100,
  client_secret: MAX_LENGTH,
  code: MAX_LENGTH,
  code_verifier: MAX_LENGTH,
  grant_type: 200,
  logout: 20,
  logout_hint: 100,
  post_logout_redirect_uri: MAX_LENGTH,
  refresh_token: MAX_LENGTH,
  token: MAX_LENGTH,
  token_type_hint: 100,
  xsrf: 200,
};

interface Sent {
  /** The query, or the body of a form. */
  readonly text: string;
  /** Text for `error_description`; undefined if nothing is wrong. */
  readonly fault?: string | undefined;
  /** Whether the library reports the fault: by a redirect if the redirect URI is valid. */
  readonly isPassedOn?: boolean;
  /** The client of a secret in a URL, or in a form that a redirect would turn into a URL. */
  readonly exposed?: { readonly clientId: string | undefined } | undefined;
}

/** Checks parameters before the library, and removes faulty ones from an authorization URL. @param corrected rewrites the text first */
export async function readParameters(request: Request, corrected: (text: string) => string): Promise<Sent> {
  const { path } = request.context;
  const isForm = request.method === 'POST';
  const start = request.url.indexOf('?');
  let text = start === -1 ? '' : request.url.slice(start + 1);
  if (hasTooMany(text)) return { text, fault: TOO_MANY };
  if (text === '' && !isForm) return { text };
  const exposed = secretIn(text);
  if (exposed) return { text: '', exposed };
  if (!isForm) request.url = `${path}?${(text = corrected(text))}`;
  const query = new URLSearchParams(isForm ? '' : text); // removes a second question mark, like the library
  let parameters = [...new Set(query.keys())].map((name): Parameter => [name, query.getAll(name)]);
  if (isForm) {
    if (!request.is('application/x-www-form-urlencoded')) return { text: '' }; // the library rejects it
    if (!/^[^;]*(; *charset="?utf-8"? *)?$/i.test(request.headers['content-type']!))
      return { text: '', fault: 'the body must be in UTF-8' };
    const body = await receiving(request, () => readBody(request));
    if (body === undefined) return { text: '', fault: `the body must have 1 to ${BODY_LIMIT} bytes` };
    text = withoutEmptyPassword(request, body.toString());
    if (hasTooMany(text)) return { text, fault: TOO_MANY };
    if (!isForPrograms(path) && secretIn(text)) return { text: '', exposed: secretIn(text) };
    text = corrected(text);
    putBack(request, Buffer.from(text));
    parameters = ofForm(text);
  }
  const faults = parameters.flatMap(findFaults);
  const fault = faults[0]?.reason ?? faultOfWhole(path, parameters);
  const isPassedOn = path === ROUTES.authorization && !isForm;
  if (isPassedOn && faults.length > 0) {
    for (const { name } of faults) query.delete(name);
    request.url = `${path}?${query}`;
  }
  return { text, fault, isPassedOn };
}

function secretIn(text: string): Sent['exposed'] {
  const sent = new URLSearchParams(text);
  if (!sent.get('client_secret')) return undefined;
  const clientId = sent.get('client_id') ?? undefined;
  return { clientId: clientId !== undefined && isStorable(clientId) ? clientId.slice(0, 100) : undefined };
}

function hasTooMany(text: string): boolean {
  return text.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS;
}

type Parameter = readonly [name: string, values: readonly string[]];

/** Reads a form like the library does. */
function ofForm(text: string): Parameter[] {
  return Object.entries(parse(text)).map(([name, values]) => [name, [values ?? []].flat()]);
}

function findFaults([name, values]: Parameter): { name: string; reason: string }[] {
  if (!Object.hasOwn(LIMITS, name)) return [];
  for (const text of values) {
    // U+FFFD replaces invalid UTF-8.
    if (/[\p{Cc}\u{fffd}]/u.test(text) || !text.isWellFormed())
      return [{ name, reason: `${name} must be text in UTF-8 without control characters` }];
    if (text.length > LIMITS[name]!)
      return [{ name, reason: `${name} must have at most ${LIMITS[name]} characters` }];
  }
  return [];
}

function faultOfWhole(path: string, parameters: readonly Parameter[]): string | undefined {
  if (path !== ROUTES.authorization && path !== ROUTES.pushed_authorization_request) return undefined;
  const stored = parameters.filter(([name]) => Object.hasOwn(OF_AUTHORIZATION, name));
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(stored)));
  return bytes > MAX_REQUEST_BYTES ? 'the authorization request is too long' : undefined;
}

/** Moves a public client's id from HTTP Basic to `client_id`: some libraries send it with an empty password (RFC 6749 §2.3.1). */
function withoutEmptyPassword({ headers }: IncomingMessage, form: string): string {
  const clientId = clientOfEmptyPassword(headers.authorization);
  if (clientId === undefined) return form;
  const [, [named, ...others]] = ofForm(form).find(([name]) => name === 'client_id') ?? ['', []];
  if (named !== undefined && (named !== clientId || others.length > 0)) return form; // the library rejects it
  delete headers.authorization;
  return named === undefined ? `${form}&${new URLSearchParams({ client_id: clientId })}` : form;
}

/** Returns the form-encoded id in HTTP Basic credentials with an empty password (RFC 6749 §2.3.1), decoded. */
function clientOfEmptyPassword(authorization: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  const [, id] = /^([^:]+):$/.exec(Buffer.from(encoded ?? '', 'base64').toString()) ?? [];
  return id === undefined
    ? undefined
    : (new URLSearchParams(`id=${id.replaceAll('&', '%26')}`).get('id') ?? undefined);
}

/** @returns undefined if the body is empty, too long or incomplete */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      if ((size += chunk.length) > BODY_LIMIT) return undefined;
    }
  } catch {
    return undefined;
  }
  return size > 0 ? Buffer.concat(chunks) : undefined;
}
