import { ALL_PLATFORM_SCOPES, ALL_SCOPES } from '../auth/scopes.js';
import { CODES } from '../http/output/problems.js';
import { integer, Model, refTo, wordOf, type JsonSchema } from '../model/json-schema.js';

type Json = Record<string, unknown>;

const header = (description: string, schema: Json = { type: 'string' }) => ({ description, schema });

const SECONDS = { ...integer(2 ** 31 - 1), minimum: 1 };

export const HEADERS = {
  'X-Request-Id': header(
    'The id that the request sent, if it was 1–64 characters of `[A-Za-z0-9._-]`; otherwise generated',
    { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
  ),
  ETag: header('Strong validator'),
  'Cache-Control': header('`private, no-cache`; on errors `no-store`'),
  Vary: header('`Authorization, X-API-Key, Origin`'),
  'X-OAuth-Scopes': header('Scopes of the credential, separated by ", "'),
  'X-Accepted-OAuth-Scopes': header('The scope that the endpoint requires'),
  'RateLimit-Policy': header(
    '`"read";q=300;w=60`: requests per window, and its length in seconds (draft-ietf-httpapi-ratelimit-headers)',
  ),
  RateLimit: header('`"read";r=299;t=42`: remaining requests, and seconds until the next window'),
  'X-RateLimit-Limit': header('Requests per window', { ...integer(), minimum: 1 }),
  'X-RateLimit-Remaining': header('Remaining requests', { ...integer(), minimum: 0 }),
  'X-RateLimit-Reset': header('Seconds until the next window', SECONDS),
  Link: header('Links to the first, previous and next page (RFC 8288)'),
  'X-Total-Count': header('`pagination.total`', { ...integer(), minimum: 0 }),
  'WWW-Authenticate': header('RFC 6750 §3, RFC 9728 §5.1'),
  Deprecation: header(
    'Only if the route, or one of its parameters or fields, is deprecated: the date of the deprecation (RFC 9745)',
  ),
  Sunset: header(
    'With `Deprecation`: the end date of the route, parameter or field, at least 12 months later (RFC 8594)',
  ),
  'Retry-After': header('Seconds to wait', SECONDS),
};

const TEXT = { type: 'string' };
const always = (schema: JsonSchema) => ({ schema });
const sometimes = (schema: JsonSchema) => ({ schema, required: false });
const CODE = always({ ...TEXT, description: 'Kind of fault, for programs' });
const PARAMETER = sometimes({ ...TEXT, description: 'The invalid parameter' });
const ALLOWED = sometimes({
  type: 'array',
  items: TEXT,
  description: 'With `parameter`: its allowed values, if they are few',
});

const FIX = sometimes({
  ...TEXT,
  description: 'With `parameter`: what to send instead of a parameter that other APIs have',
});

const Fault = new Model(
  'ProblemDetail',
  {
    parameter: PARAMETER,
    pointer: sometimes({
      ...TEXT,
      description: 'The invalid part of the body: a JSON pointer as a fragment',
    }),
    field: sometimes({
      type: ['string', 'null'],
      description: 'With `pointer`: the name of the field; null if the whole body is wrong',
    }),
    code: CODE,
    detail: always(TEXT),
    allowed: ALLOWED,
    fix: FIX,
    max: sometimes({ ...integer(), description: 'Maximum length of the text' }),
    actual: sometimes({ ...integer(), description: 'Length of the text' }),
  },
  'One fault of a request: a parameter, or a part of the body',
);

const FeedFault = new Model(
  'FeedProblemDetail',
  {
    parameter: PARAMETER,
    line: sometimes({ ...integer(), minimum: 1, description: 'The invalid line' }),
    pointer: sometimes({ ...TEXT, description: 'With `line`: a JSON pointer into it, as a fragment' }),
    code: CODE,
    detail: always(TEXT),
    allowed: ALLOWED,
    fix: FIX,
  },
  'One fault of a request: a parameter, or a line of a feed',
);

const problem = (scopes: readonly string[], fault: Model, maxItems: number): Json => ({
  type: 'object',
  description: 'RFC 9457',
  additionalProperties: false,
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: TEXT,
    status: { ...integer(599), minimum: 400, maximum: 599 },
    detail: TEXT,
    instance: TEXT,
    code: wordOf(CODES),
    request_id: TEXT,
    errors: { type: 'array', minItems: 1, maxItems, items: refTo(fault) },
    required_scope: wordOf(scopes),
    granted_scopes: { type: 'array', items: TEXT },
    retry_after: SECONDS,
    fix: { ...TEXT, description: 'The first `fix` in `errors`' },
  },
});

export const PROBLEM = problem(ALL_SCOPES, Fault, 32);

/** The errors of the platform's routes, which can be about lines of a feed. */
export const PLATFORM_PROBLEM = problem(ALL_PLATFORM_SCOPES, FeedFault, 100);
