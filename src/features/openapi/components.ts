import { ALL_PLATFORM_SCOPES, ALL_SCOPES } from '../../auth/scopes.js';
import { STAND_IN_SECONDS } from '../../database/member-reads.js';
import { PROBLEMS } from '../../http/output/problems.js';

type Json = Record<string, unknown>;

const header = (description: string, schema: Json = { type: 'string' }) => ({ description, schema });

export const HEADERS = {
  'X-Request-Id': header(
    'The one sent with the request, if it was 1–64 characters of `[A-Za-z0-9._-]`; otherwise generated',
    { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
  ),
  Age: header(
    'While the primary database is away: seconds since it was last reached. What was written meanwhile may be missing (RFC 9111 §5.1)',
    { type: 'integer', minimum: 1, maximum: STAND_IN_SECONDS },
  ),
  ETag: header('Strong validator'),
  'Cache-Control': header('`private, no-cache`; on errors `no-store`'),
  Vary: header('`Authorization, X-API-Key, Origin`'),
  'X-OAuth-Scopes': header('Scopes of the credential, separated by ", "'),
  'X-Accepted-OAuth-Scopes': header('The scope that the endpoint needs'),
  'RateLimit-Policy': header(
    '`"read";q=300;w=60`: requests per window, and its length in seconds (draft-ietf-httpapi-ratelimit-headers)',
  ),
  RateLimit: header('`"read";r=299;t=42`: remaining requests, and seconds until the next window'),
  Link: header('Links to the first, previous and next page (RFC 8288)'),
  'X-Total-Count': header('`pagination.total`', { type: 'integer', minimum: 0 }),
  'WWW-Authenticate': header('RFC 6750 §3, RFC 9728 §5.1'),
  'Retry-After': header('Seconds to wait', { type: 'integer', minimum: 1 }),
};

/** An object without other properties, of which these are always there. */
const closed = (required: readonly string[], properties: Json): Json => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties,
});
const TEXT = { type: 'string' };

/** The faults of a request: of a part of its body, or of a parameter. */
const faults = (maxItems: number, ofBody: Json): Json => ({
  type: 'array',
  minItems: 1,
  maxItems,
  items: {
    oneOf: [
      ofBody,
      closed(['parameter', 'code', 'detail'], {
        parameter: TEXT,
        code: TEXT,
        detail: TEXT,
        allowed: { type: 'array', items: TEXT },
      }),
    ],
  },
});

/** An error (RFC 9457). */
export const PROBLEM: Json = {
  type: 'object',
  description: 'RFC 9457',
  additionalProperties: false,
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: [...PROBLEMS.keys()] },
    request_id: { type: 'string' },
    errors: faults(
      32,
      closed(['pointer', 'field', 'code', 'detail'], {
        pointer: TEXT,
        field: { type: ['string', 'null'] },
        code: TEXT,
        detail: TEXT,
        max: { type: 'integer' },
        actual: { type: 'integer' },
      }),
    ),
    required_scope: { type: 'string', enum: ALL_SCOPES },
    granted_scopes: { type: 'array', items: { type: 'string' } },
    retry_after: { type: 'integer', minimum: 1 },
  },
};

/** The same for the platform's calls, whose errors can concern lines of a feed. */
export const PLATFORM_PROBLEM: Json = {
  ...PROBLEM,
  properties: {
    ...(PROBLEM.properties as Json),
    errors: faults(
      100,
      closed(['line', 'pointer', 'code', 'detail'], {
        line: { type: 'integer', minimum: 1 },
        pointer: TEXT,
        code: TEXT,
        detail: TEXT,
      }),
    ),
    required_scope: { type: 'string', enum: ALL_PLATFORM_SCOPES },
  },
};
