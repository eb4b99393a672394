// The reference's forms: they update the sample next to them, sign in, send the request, and have links that contain their values.
import { SignIn } from '../../../clients/typescript/src/sign-in.js';
import { all, copy, copyButton, make, one, say } from './page.js';
import { writeSnippets } from './snippets.js';
import { tokenize } from './tokens.js';

/** Storage key of the link to return to after the sign-in: of a section, or of an operation with its values. */
const PLACE = 'public-user-api:place';

const settings = one('#try-settings')?.dataset;

/** The form's operation: `{ method, path, fixed, open, scope }`. */
const callOf = (form) => JSON.parse(form.closest('[data-call]').dataset.call);

/** The form's request, in the format of the samples; the body is the typed text. */
function requestOf(form) {
  const { method, path, fixed } = callOf(form);
  const query = new URLSearchParams(fixed);
  const headers = {};
  let target = path;
  let body;
  for (const { name, value, dataset } of form.elements) {
    if (dataset.place === 'body') body = value;
    else if (dataset.place === 'path') target = target.replace(`{${name}}`, () => encodeURIComponent(value));
    else if (dataset.place === 'query' && value !== '') query.set(name, value);
    else if (dataset.place === 'header' && value !== '') headers[name] = value;
  }
  return { method, path: query.size === 0 ? target : `${target}?${query}`, body, headers };
}

/** Writes the form's request in every language; while its body is not JSON, the samples stay unchanged. */
function writeSample(form) {
  const section = form.closest('[data-call]');
  const { body, ...request } = requestOf(form);
  let value;
  try {
    value = body && JSON.parse(body);
  } catch {
    return;
  }
  for (const { language, code } of writeSnippets(
    { ...request, body: value },
    settings.issuer,
    !callOf(form).open,
  ))
    one(`.in-${language} code`, section).replaceChildren(...coloured(code));
}

const coloured = (code) =>
  tokenize(code).map(({ kind, text }) =>
    kind ? make('span', { className: kind, textContent: text }) : text,
  );

/** The URL of an operation with its form's values, in the fragment, which browsers never send. */
function linkOf(form) {
  const fields = [...form.elements].filter(({ name, value }) => name && value !== '');
  const values = new URLSearchParams(fields.map(({ name, value }) => [name, value]));
  return `/docs#${form.closest('[data-call]').id}?${values}`;
}

const afterPaint = (work) => requestAnimationFrame(() => requestAnimationFrame(work));

/**
 * Copies the values in the URL's fragment to the form of the named operation, and scrolls there; the reader may send it.
 *
 * @returns the named section if the fragment has no values: browsers scroll there themselves
 */
function openLinked() {
  const [, id, query] = /^#([^?]+)(?:\?(.*))?$/.exec(location.hash) ?? [];
  const section = id && document.getElementById(id);
  const form = section && query !== undefined && one('.try form', section);
  if (!form) return section;
  const values = new URLSearchParams(query);
  for (const field of form.elements) {
    if (!field.name) continue;
    field.value = values.get(field.name) ?? '';
    if (field.selectedIndex < 0) field.selectedIndex = 0; // the field has no such value
  }
  form.closest('.try').open = true;
  writeSample(form);
  afterPaint(() => section.scrollIntoView()); // after the layout changes, so that the section does not move again
  return undefined;
}

function startTrying() {
  const session = new SignIn({
    issuer: location.origin,
    clientId: settings.clientId,
    redirectUri: `${location.origin}/docs`,
    scope: settings.scope,
    storage: sessionStorage, // cleared when the tab closes
  });
  // PKCE needs Web Crypto, which exists only on https and localhost; the client is registered only for PUBLIC_URL.
  const possible = isSecureContext && location.origin === settings.issuer;
  const bar = one('.session');
  const [signIn, who, signOut] = [one('[data-sign-in]'), one('.who'), one('[data-sign-out]')];

  async function show(text) {
    const { signedIn } = session;
    bar.hidden = !possible;
    signIn.hidden = signedIn;
    signOut.hidden = who.hidden = !signedIn;
    for (const form of all('.try form')) {
      const { open } = callOf(form);
      const hint = one('.try-hint', form);
      const send = one('[type="submit"]', form);
      // Disables the hidden button: Enter in a field would still send the form, and on load, a quick click would send it without the token.
      send.hidden = send.disabled = !open && !signedIn;
      if (open) hint.textContent = 'No credential is needed.';
      else if (signedIn) hint.textContent = 'This sends your access token.';
      else hint.replaceChildren(...(possible ? invitation(form) : noSignIn()));
    }
    if (text) say(text);
    if (!signedIn) return;
    const response = await call('GET', '/api/public/me').catch(() => undefined);
    who.textContent = response?.ok ? `Signed in as ${(await response.json()).display_name}` : 'Signed in';
  }

  function invitation(form) {
    const button = make('button', {
      type: 'button',
      className: 'button button-small',
      textContent: 'Sign in',
    });
    button.addEventListener('click', () => begin(linkOf(form)));
    return [
      button,
      ' to send this request as yourself. You cannot use a key here, because a browser shows the key to its user. To use a key, run the curl command above.',
    ];
  }

  const noSignIn = () => [
    `You can sign in only at ${settings.issuer}, over https. To use a key, run the curl command above.`,
  ];

  async function begin(place) {
    sessionStorage.setItem(PLACE, place);
    location.assign(await session.begin());
  }

  async function call(method, path, body, given = {}) {
    const headers = { ...given, ...(session.signedIn ? await session.headers(false) : {}) };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const options = { method, headers, body, cache: 'no-store' };
    return fetch(path, options);
  }

  signIn.addEventListener(
    'click',
    () => void begin(`/docs${location.hash}`).catch((error) => say(error.message)),
  );
  signOut.addEventListener('click', async () => {
    await session.signOut().catch(() => undefined);
    for (const result of all('.try-result')) result.hidden = true;
    await show('Signed out: the access was revoked.');
    signIn.focus();
  });
  for (const form of all('.try form')) {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void send(form);
    });
  }

  async function send(form) {
    const { open } = callOf(form);
    const result = one('.try-result', form);
    const button = one('[type="submit"]', form);
    const { method, path, body, headers } = requestOf(form);
    button.disabled = true;
    const started = performance.now();
    try {
      const response = open
        ? await fetch(path, { headers, cache: 'no-store' })
        : await call(method, path, body, headers);
      const text = await response.text();
      const ms = Math.round(performance.now() - started);
      result.replaceChildren(...answered(response, text, ms, `${method} ${path}`));
      say(`${response.status} ${response.statusText} in ${ms} ms`);
    } catch (error) {
      const lost = error.code === 'signed_out';
      result.replaceChildren(
        make('p', {
          textContent: lost ? 'The sign-in has ended. Sign in again.' : 'There was no response. Try again.',
        }),
      );
      if (lost) await show();
      say(result.textContent);
    } finally {
      result.hidden = false;
      result.scrollIntoView({ block: 'nearest' });
      button.disabled = button.hidden;
    }
  }

  function answered(response, text, ms, request) {
    const status = make('span', {
      className: `status status-${response.ok ? 'ok' : 'bad'}`,
      textContent: response.status,
    });
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const blocks = [
      make(
        'div',
        { className: 'code' },
        make('p', { className: 'code-title' }, status, ` ${ms} ms`),
        preformatted(readable(text), 'Response'),
      ),
      make(
        'details',
        { className: 'code' },
        make('summary', { className: 'code-title', textContent: 'Request and headers' }),
        preformatted(`${request}\n\n${headers}`, 'Request and headers'),
      ),
    ];
    for (const block of blocks) block.append(copyButton(block));
    return blocks;
  }

  function preformatted(text, label) {
    const pre = make('pre', { tabIndex: 0 }, make('code', {}, ...coloured(text)));
    pre.setAttribute('aria-label', label);
    return pre;
  }

  function readable(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  void arrive().then(show);

  /** Reads the code from the URL when the reader returns from the sign-in. */
  async function arrive() {
    const { searchParams } = new URL(location.href);
    if (!searchParams.has('state')) return void openLinked();
    const came = location.href;
    history.replaceState(null, '', sessionStorage.getItem(PLACE) ?? '/docs');
    sessionStorage.removeItem(PLACE);
    openLinked()?.scrollIntoView();
    try {
      await session.finish(came);
      return 'Signed in';
    } catch (error) {
      return error.code === 'access_denied' ? 'You denied access.' : error.message;
    }
  }
}

if (settings) {
  for (const form of all('.try form')) {
    form.addEventListener('input', () => writeSample(form));
    one('[data-link]', form).addEventListener('click', (event) => {
      const link = linkOf(form);
      history.replaceState(null, '', link);
      void copy(event.currentTarget, location.origin + link);
    });
  }
  addEventListener('hashchange', openLinked);
  startTrying();
}
