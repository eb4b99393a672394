import { isForPrograms } from '../../authorization-server/provider/provider.js';
import { SECURITY_HEADERS } from '../../layout/layout.js';
import { RETRY_AFTER_SECONDS, sendBusy } from '../../http/pipeline/busy.js';
import type { Refuse } from '../../http/pipeline/front-door.js';
import { ENGLISH, LANGUAGES, languageOf, textsIn } from '../rendering/texts/texts.js';

/** Unstyled: a page with the style sheet would cost as much as the response that it replaces. */
const BUSY_PAGES = new Map(
  LANGUAGES.map((language) => {
    const [title, message] = textsIn(language).faults.busy;
    return [
      language,
      `<!doctype html><html lang="${language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
        `<title>${title}</title><h1>${title}</h1><p>${message}</p><p>Error id: `,
    ];
  }),
);
const BUSY_JSON = JSON.stringify({
  error: 'temporarily_unavailable',
  error_description: ENGLISH.faults.busy[1],
}).slice(0, -1);
const busyHeaders = (more: Readonly<Record<string, string>>) =>
  Object.entries({ ...SECURITY_HEADERS, 'Retry-After': RETRY_AFTER_SECONDS, ...more }).flat();
const BUSY_PAGE_HEADERS = busyHeaders({
  Vary: 'Accept-Language',
  'Content-Type': 'text/html; charset=utf-8',
});
const BUSY_JSON_HEADERS = busyHeaders({
  'Content-Type': 'application/json; charset=utf-8',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'Retry-After',
});

/** Responds 503 if the process is overloaded: JSON for programs, a page for browsers. */
export const refuseBusyOauth: Refuse = (request, response) => {
  const { id, path } = request.context; // the id consists of letters, digits, dots, dashes and underscores
  const { accept, 'accept-language': languages } = request.headers;
  // Browsers that open a page accept HTML; programs send no `Accept`, or ask for JSON.
  if (isForPrograms(path) || accept?.includes('text/html') !== true)
    sendBusy(request, response, `${BUSY_JSON},"error_id":"${id}"}`, BUSY_JSON_HEADERS);
  else {
    const page = BUSY_PAGES.get(languageOf(undefined, languages))!;
    sendBusy(request, response, `${page}${id}</p>`, BUSY_PAGE_HEADERS);
  }
};
