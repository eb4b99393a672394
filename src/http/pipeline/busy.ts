import type { RejectBusy } from './entry-point.js';
import { API_PREFIX, SHARED_HEADERS } from './api-headers.js';
import { PROBLEMS } from '../output/problems.js';

/** Retry-After of `temporarily_unavailable`, in seconds. */
export const RETRY_AFTER_SECONDS = '1';

const HEADERS = Object.entries({
  ...SHARED_HEADERS,
  'Cache-Control': 'no-store',
  'Retry-After': RETRY_AFTER_SECONDS,
  'Content-Type': 'application/problem+json; charset=utf-8',
}).flat();

/** Makes the function that sends the problem `temporarily_unavailable` if {@link EntryPoint} admits no further request. */
export function rejectBusy(publicUrl: string): RejectBusy {
  const { code, status, title, meaning } = PROBLEMS.get('temporarily_unavailable')!;
  const type = `${publicUrl}${API_PREFIX}/problems/${code}`;
  const before = `${JSON.stringify({ type, title, status, detail: meaning }).slice(0, -1)},"instance":`;
  const between = `,"code":"${code}","request_id":"`;
  return (request, response) => {
    const { id, path } = request.context; // the id consists of letters, digits, dots, dashes and underscores
    sendBusy(request, response, `${before}${JSON.stringify(path)}${between}${id}"}`, HEADERS);
  };
}

/** Sends a 503 with this body and these headers. */
export function sendBusy(
  { context, method }: Parameters<RejectBusy>[0],
  response: Parameters<RejectBusy>[1],
  body: string,
  headers: readonly string[],
): void {
  const length = String(Buffer.byteLength(body));
  response.writeHead(503, ['X-Request-Id', context.id, 'Content-Length', length, ...headers]);
  response.end(method === 'HEAD' ? undefined : body);
}
