import { STATUS_CODES } from 'node:http';
import type { Access } from '../auth/auth.decorators.js';
import { accessOf } from '../auth/auth.guards.js';
import { queryOfHandler } from '../http/input/query.js';
import type { QueryClass } from '../http/input/parameters.js';
import { deprecationHeaders, describeOperation, describeParameters } from '../http/output/openapi.js';
import { PROBLEMS, type ProblemCode } from '../http/output/problems.js';
import { schemasUsedBy, type JsonSchema } from '../model/json-schema.js';
import { RATE_LIMIT_HEADERS } from '../http/pipeline/api-headers.js';
import type { Route } from '../http/route-table.js';
import type { Example } from './examples.js';

type Json = Record<string, unknown>;

/** Headers that responses declare; `x-response-headers` only names the others, so that generated types stay small. */
export const DECLARED: readonly string[] = ['ETag', 'Link', 'X-Total-Count'];
const EVERYWHERE = ['X-Request-Id', 'Cache-Control', 'Vary'];

/** Lists the route's error codes in catalog order, including codes that follow from its access and query. */
export function listCodes(route: Route): ProblemCode[] {
  const { handler, controller } = route;
  const access = accessOf(handler, controller)!;
  const codes: ProblemCode[] = [
    ...describeOperation(handler).problems,
    'unknown_parameter',
    'invalid_parameter',
    'not_acceptable',
    'internal_error',
    'temporarily_unavailable',
  ];
  if (access !== 'public') {
    codes.push(
      'ambiguous_credentials',
      'missing_credentials',
      'invalid_credentials',
      'api_key_in_browser',
      'ip_not_allowed',
      'wrong_credential_kind',
      'rate_limited',
    );
    if (access !== null) codes.push('insufficient_scope');
  }
  const parameters = queriesOf(handler).flatMap(describeParameters);
  if (parameters.some(({ name }) => name === 'cursor')) codes.push('invalid_cursor');
  if (parameters.some(({ required }) => required)) codes.push('missing_parameter');
  return ([...PROBLEMS.keys()] as ProblemCode[]).filter((code) => codes.includes(code));
}

function queriesOf(handler: object): QueryClass[] {
  const accepted = queryOfHandler(handler);
  if (typeof accepted === 'function') return [accepted];
  return [accepted.absent, ...Object.values(accepted.values)].map(({ query }) => query);
}

/** Builds an operation's responses: the success, and references to shared error responses. */
export function describeResponses(route: Route, examples: readonly Example[]): Json {
  const { handler, controller, method } = route;
  const { summary, response } = describeOperation(handler);
  const access = accessOf(handler, controller)!;
  const names = successHeaders(access, response!, method);
  names.push(...deprecationHeaders(handler, queryOfHandler(handler)).map(([name]) => name));
  // Public routes only describe the API; their callers need none of these headers.
  const declared = access === 'public' ? [] : DECLARED;
  const errors = Map.groupBy(listCodes(route), (code) => PROBLEMS.get(code)!.status);
  return {
    200: {
      description: summary,
      headers: Object.fromEntries(
        names
          .filter((name) => declared.includes(name))
          .map((name) => [name, { $ref: `#/components/headers/${name}` }]),
      ),
      'x-response-headers': names.filter((name) => !declared.includes(name)),
      content: { 'application/json': { schema: response, examples: examplesOf(examples, [200]) } },
    },
    304: method === 'GET' ? { $ref: '#/components/responses/NotModified' } : undefined,
    ...Object.fromEntries(
      Array.from(errors, ([status, codes]) => [
        status,
        { $ref: `#/components/responses/${nameOf(status, codes)}` },
      ]),
    ),
  };
}

/** Builds the shared responses: one per code if a route has a single code of that status, and one per status for routes with several. */
export function sharedResponses(routes: readonly Route[], examples: readonly Example[]): Json {
  const shared = new Map<string, { status: number; codes: Set<ProblemCode> }>();
  for (const route of routes) {
    for (const [status, codes] of Map.groupBy(listCodes(route), (code) => PROBLEMS.get(code)!.status)) {
      const name = nameOf(status, codes);
      const known = shared.get(name) ?? { status, codes: new Set() };
      shared.set(name, { status, codes: known.codes.union(new Set(codes)) });
    }
  }
  const inOrder = [...shared].toSorted(([, one], [, other]) => one.status - other.status);
  return {
    NotModified: {
      description: 'Not modified: the current response still has this ETag',
      'x-response-headers': ['ETag', 'X-Request-Id'],
    },
    ...Object.fromEntries(
      inOrder.map(([name, { status, codes }]) => [name, problemResponse(status, [...codes], examples)]),
    ),
  };
}

/** Names a response: `EventNotFound`, or for several errors with one status, `BadRequest`. */
function nameOf(status: number, codes: readonly ProblemCode[]): string {
  const words = codes.length === 1 ? codes[0]!.split('_') : STATUS_CODES[status]!.split(' ');
  return words.map((word) => word.replace(/^./, (letter) => letter.toUpperCase())).join('');
}

function problemResponse(status: number, codes: readonly ProblemCode[], examples: readonly Example[]): Json {
  const names = [...EVERYWHERE];
  if (status === 401 || status === 403) names.push('WWW-Authenticate');
  if (status === 429 || status === 503) names.push('Retry-After');
  if (status === 412) names.push('ETag');
  const fitting = examples.filter(({ response }) =>
    codes.includes((response.body as { code?: ProblemCode }).code!),
  );
  const schema = { $ref: '#/components/schemas/Problem' };
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS.get(code)!.title}`).join('; '),
    'x-response-headers': names,
    content: { 'application/problem+json': { schema, examples: examplesOf(fitting, [status]) } },
  };
}

/** Returns the examples with one of these statuses, by name; undefined if there are none. */
function examplesOf(examples: readonly Example[], statuses: readonly number[]): Json | undefined {
  const fitting = examples.filter(({ response }) => statuses.includes(response.status));
  if (fitting.length === 0) return undefined;
  return Object.fromEntries(
    fitting.map(({ name, summary, response }) => [name, { summary, value: response.body }]),
  );
}

function successHeaders(access: Access, response: JsonSchema, method: string): string[] {
  const names = [...EVERYWHERE, ...(method === 'POST' ? [] : ['ETag'])];
  if (access !== 'public') names.push('X-OAuth-Scopes', 'X-Accepted-OAuth-Scopes', ...RATE_LIMIT_HEADERS);
  if ('Pagination' in schemasUsedBy(response)) names.push('Link', 'X-Total-Count');
  return names;
}
