// The requests sent to the servers.

/**
 * @typedef {{name: string, path: string | ((firstEvent: string) => string), method?: string, body?: string}} Question
 * @typedef {{header: string, value: string}} Credential
 * @typedef {{credential: Credential, path: string}} Request
 */

/** @returns {Credential} */
export const apiKey = (key) => ({ header: 'X-API-Key', value: key });
/** @returns {Credential} */
export const bearer = (token) => ({ header: 'Authorization', value: `Bearer ${token}` });

/** Supported by every peer, and compared. */
export const COMPARED = [
  { name: 'GET /profile', path: '/api/public/profile' },
  { name: 'GET /events (20)', path: '/api/public/events' },
  { name: 'GET /connections (20)', path: '/api/public/connections' },
  { name: 'GET /achievements (20)', path: '/api/public/achievements' },
  { name: 'GET /achievements?action=stats', path: '/api/public/achievements?action=stats' },
];

/** The rest of the API, which only this server has. `path` may depend on the member's first event. */
export const OTHERS = [
  { name: 'GET /me', path: '/api/public/me' },
  { name: 'GET /credential', path: '/api/public/credential' },
  { name: 'GET /sync', path: '/api/public/sync' },
  { name: 'GET /events/{id}', path: (event) => `/api/public/events/${event}` },
  { name: 'GET /events?time_filter=past', path: '/api/public/events?time_filter=past' },
  { name: 'GET /events?q=meeting&sort=title', path: '/api/public/events?q=meeting&sort=title' },
  { name: 'GET /achievements?action=all', path: '/api/public/achievements?action=all' },
  { name: 'GET /achievements?action=detail', path: '/api/public/achievements?action=detail&id=7' },
  { name: 'GET /achievements?action=pinned', path: '/api/public/achievements?action=pinned' },
  {
    name: 'PUT /profile',
    path: '/api/public/profile',
    method: 'PUT',
    body: '{"bio":"Meets people on Fridays."}',
  },
];

/**
 * Makes the requests of one kind, one for each credential.
 *
 * @param {Question} question
 * @param {Credential[]} credentials
 * @returns {Request[]}
 */
export function requestsOf(question, credentials, firstEvents) {
  return credentials.map((credential, i) => ({
    credential,
    path: typeof question.path === 'function' ? question.path(firstEvents[i]) : question.path,
  }));
}

/** Sends one request. @returns the parsed body of a 200 */
export async function ask(server, { header, value }, path) {
  const response = await fetch(server.url + path, { headers: { [header]: value } });
  const text = await response.text();
  if (response.status !== 200)
    throw new Error(`${server.name} returns ${response.status} for ${path}: ${text}`);
  return JSON.parse(text);
}
