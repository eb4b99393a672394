import { ALL_PLATFORM_SCOPES, ALL_SCOPES } from '../../auth/scopes.js';
import { PROBLEMS } from '../../http/output/problems.js';

type Json = Record<string, unknown>;

const header = (description: string, schema: Json = { type: 'string' }) => ({ description, schema });

/** The headers of responses. */
export const HEADERS = {
  'X-Request-Id': header(
    'The one sent with the request, if it was 1–64 characters of `[A-Za-z0-9._-]`; otherwise generated',
    {
      type: 'string',
      pattern: '^[A-Za-z0-9._-]{1,64}$',
    },
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

const PROBLEM_PARAMETER: Json = {
  type: 'object',
  required: ['parameter', 'code', 'detail'],
  additionalProperties: false,
  properties: {
    parameter: { type: 'string' },
    code: { type: 'string' },
    detail: { type: 'string' },
    allowed: { type: 'array', items: { type: 'string' } },
  },
};

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
    errors: {
      type: 'array',
      minItems: 1,
      maxItems: 32,
      items: {
        oneOf: [
          {
            type: 'object',
            required: ['pointer', 'field', 'code', 'detail'],
            additionalProperties: false,
            properties: {
              pointer: { type: 'string' },
              field: { type: ['string', 'null'] },
              code: { type: 'string' },
              detail: { type: 'string' },
              max: { type: 'integer' },
              actual: { type: 'integer' },
            },
          },
          PROBLEM_PARAMETER,
        ],
      },
    },
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
    errors: {
      type: 'array',
      minItems: 1,
      maxItems: 100,
      items: {
        oneOf: [
          {
            type: 'object',
            required: ['line', 'pointer', 'code', 'detail'],
            additionalProperties: false,
            properties: {
              line: { type: 'integer', minimum: 1 },
              pointer: { type: 'string' },
              code: { type: 'string' },
              detail: { type: 'string' },
            },
          },
          PROBLEM_PARAMETER,
        ],
      },
    },
    required_scope: { type: 'string', enum: ALL_PLATFORM_SCOPES },
  },
};
