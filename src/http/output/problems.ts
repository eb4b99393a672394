import { nameWords } from '../../model/json-schema.js';

/** The API's error codes: status, meaning, fix, and a title if the one made from the code is unsuitable. */
const table = {
  invalid_json: [
    400,
    'The request body is empty, is not JSON, or is not a JSON object.',
    'Send one JSON object in UTF-8.',
    'Invalid JSON',
  ],
  invalid_parameter: [
    400,
    'A parameter’s value is not allowed or out of range, or a parameter that is not a list is repeated.',
    'Read `errors`: each entry names the parameter and, if there is a fixed set, the allowed values.',
  ],
  unknown_parameter: [
    400,
    'The endpoint has no parameter with this name.',
    'Remove the parameter that `errors` names, or correct its name: `detail` lists the valid names.',
  ],
  missing_parameter: [
    400,
    'A required parameter is absent or empty.',
    'Add the parameter that `errors` names.',
  ],
  invalid_cursor: [
    400,
    'The cursor was altered, belongs to another user, path, sort or filter, or its signing key is no longer in use.',
    'Start again without a cursor. Keep sort and filters the same.',
  ],
  ambiguous_credentials: [
    400,
    'The request carries more than one credential.',
    'Send either X-API-Key or Authorization: Bearer, once.',
  ],
  missing_credentials: [
    401,
    'The request carries no credential.',
    'Send `X-API-Key: <key>` from a server, or `Authorization: Bearer <access token>`.',
  ],
  invalid_credentials: [
    401,
    'The credential is unknown, expired or revoked, lacks a valid DPoP proof, or its owner or app is disabled.',
    'Refresh the access token, or ask an admin for a new key.',
  ],
  insufficient_scope: [
    403,
    'The credential lacks the scope that this endpoint requires.',
    'Request `required_scope` when you sign the member in, or ask an admin for a key with that scope.',
  ],
  wrong_credential_kind: [
    403,
    'Platform keys cannot read members’ data, and members’ credentials cannot use the platform’s endpoints.',
    'Use a member’s credential under `/api/public`, and a platform key under `/api/platform`.',
    'Wrong kind of credential',
  ],
  api_key_in_browser: [
    403,
    'A browser sent the key, so its user can read the key. The server recorded this exposure.',
    'Use OAuth with PKCE in browsers, and rotate this key.',
    'API key in a browser',
  ],
  origin_not_allowed: [
    403,
    'The app has not registered the web page’s origin for MCP requests.',
    'Register the page’s origin for the app, or send the request from a server or a native app.',
    'Origin not allowed',
  ],
  ip_not_allowed: [
    403,
    'The key cannot be used from this network address.',
    'Send the request from an allowed network, or ask an admin for a key for this network.',
    'Address not allowed',
  ],
  not_found: [
    404,
    'No route has this path, or a calendar link is invalid.',
    'Compare the path with openapi.json: case and slashes matter.',
  ],
  event_not_found: [
    404,
    'No event has this id, or the user has no access to the event.',
    'Use an id from the list of events.',
  ],
  achievement_not_found: [
    404,
    'No achievement has this id, or the user cannot see the achievement.',
    'Use an id from the list of all achievements.',
  ],
  method_not_allowed: [
    405,
    'The route does not support this method.',
    'Use a method that the Allow header lists.',
  ],
  not_acceptable: [
    406,
    'The Accept header excludes application/json.',
    'Send Accept: application/json, or no Accept header.',
  ],
  idempotency_conflict: [
    409,
    'The Idempotency-Key was used for another body within the last 24 hours.',
    'Use a new key for each new body.',
    'Idempotency key in use',
  ],
  cursor_expired: [
    410,
    'The server no longer stores the changes since this cursor, or the database was restored or replaced.',
    'Get a new cursor, read everything again, then continue from that cursor.',
  ],
  precondition_failed: [
    412,
    'The profile has changed since the version that the request names.',
    'Read the profile again, merge your changes, and send them with the new version.',
  ],
  payload_too_large: [
    413,
    'The body exceeds 16,384 bytes (assistants: 131,072; feeds: 8 MB, 5,000 lines).',
    'Send only the fields that change; split a feed into parts.',
  ],
  unsupported_media_type: [
    415,
    'The endpoint does not accept the media type or encoding of the body.',
    'Send Content-Type: application/json; for a feed, application/x-ndjson.',
  ],
  validation_failed: [
    422,
    'Some fields or lines of the body are invalid; nothing was saved.',
    'Read `errors`: it lists up to 100 invalid fields or lines.',
  ],
  rate_limited: [
    429,
    'The credential sent too many requests, or the address sent too many invalid credentials.',
    'Wait for `retry_after` seconds, then try again.',
    'Too many requests',
  ],
  internal_error: [500, 'Internal server error.', 'Retry once. If it fails again, report the `request_id`.'],
  temporarily_unavailable: [
    503,
    'The database is unavailable, or the server is overloaded or shutting down.',
    'Wait a second, then send the same request again.',
  ],
} as const satisfies Record<string, Row>;

export type ProblemCode = keyof typeof table;

export interface ProblemDefinition {
  readonly code: ProblemCode;
  readonly status: number;
  readonly title: string;
  readonly meaning: string;
  readonly fix: string;
}

type Row = readonly [status: number, meaning: string, fix: string, title?: string];

const titleOf = (code: string) => code[0]!.toUpperCase() + code.slice(1).replaceAll('_', ' ');

export const PROBLEMS: ReadonlyMap<string, ProblemDefinition> = new Map(
  (Object.keys(table) as ProblemCode[]).map((code) => {
    const [status, meaning, fix, title = titleOf(code)]: Row = table[code];
    return [code, { code, status, title, meaning, fix }];
  }),
);

export const CODES = nameWords('ProblemCode', [...PROBLEMS.keys()]);

/** Builds a JSON pointer into a body, as a fragment (RFC 6901 §6): `#/record/tags`. */
export function pointerTo(names: readonly string[]): string {
  const tokens = names.map((name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1')));
  return ['#', ...tokens].join('/');
}

/** A fault in a body field, parameter or feed line (docs/api-contract.md §8). */
export type ProblemDetail =
  | { pointer: string; field: string | null; code: string; detail: string; max?: number; actual?: number }
  | { parameter: string; code: string; detail: string; allowed?: readonly string[]; fix?: string }
  | { line: number; pointer: string; code: string; detail: string };

interface ProblemOptions {
  /** Description for this request; default: a summary of `errors`, or the table's meaning. */
  readonly detail?: string;
  readonly errors?: readonly ProblemDetail[];
  /** Number of all faults, if `errors` contains only the first ones. */
  readonly count?: number;
  /** Further properties of the response body, such as `required_scope`. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error response of the API. Callers receive its texts, so they must not contain secrets. */
export class Problem extends Error {
  override name = 'Problem';
  readonly definition: ProblemDefinition;
  readonly detail: string | undefined;

  constructor(
    code: ProblemCode,
    readonly options: ProblemOptions = {},
  ) {
    const { errors, detail = summarize(errors ?? [], options.count) } = options;
    super(detail ?? code, { cause: options.cause });
    this.definition = PROBLEMS.get(code)!;
    this.detail = detail;
  }
}

/** Describes at most three faults in `detail`, which is all that some clients show. */
function summarize(errors: readonly ProblemDetail[], count = errors.length): string | undefined {
  const sentences = errors
    .slice(0, 3)
    .map((fault) => ('line' in fault ? `Line ${fault.line}: ${fault.detail}.` : fault.detail))
    .join(' ');
  if (count < 2) return sentences || undefined;
  const [first] = errors;
  const subjects = 'line' in first! ? 'lines' : 'parameter' in first! ? 'parameters' : 'fields';
  return `${count} ${subjects} are invalid.${count > 3 ? ' The first three:' : ''} ${sentences}`;
}

/** Makes the problem for a method that the route does not support (RFC 9110 §15.5.6). @param methods supported methods */
export function methodNotAllowed(methods: readonly string[]): Problem {
  const allow = methods.join(', ');
  return new Problem('method_not_allowed', {
    detail: `This route supports ${allow}.`,
    headers: { Allow: allow },
  });
}
