// For all pages: copies code, remembers the snippets' language, filters the contents, marks the current section, and tries calls.
import { SignIn } from '../../../clients/typescript/src/sign-in.js';

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Announces to screen readers what others see. */
const say = (text) => (one('#heard').textContent = text);

/* Copying */

for (const block of all('.code')) block.append(copyButton(block));

function copyButton(block) {
  const button = make('button', { type: 'button', className: 'copy', textContent: 'Copy' });
  button.setAttribute('aria-label', 'Copy this code');
  button.addEventListener('click', async () => {
    const shown = all('pre', block).find((pre) => pre.getClientRects().length > 0) ?? one('pre', block);
    await navigator.clipboard.writeText(shown.textContent);
    button.textContent = 'Copied';
    say('Copied');
    setTimeout(() => (button.textContent = 'Copy'), 2_000);
  });
  return button;
}

/* One language for all snippets, kept for the next visit */

const LANGUAGE = 'public-user-api:language';

function choose(language) {
  for (const input of all(`.languages input[value="${language}"]`)) input.checked = true;
}

for (const input of all('.languages input')) {
  input.addEventListener('change', () => {
    const before = input.getBoundingClientRect().top;
    choose(input.value);
    scrollBy({ top: input.getBoundingClientRect().top - before, behavior: 'instant' });
    localStorage.setItem(LANGUAGE, input.value);
  });
}
const kept = localStorage.getItem(LANGUAGE);
if (/^[a-z]+$/.test(kept ?? '')) choose(kept);

/* Contents */

const contents = one('#contents');
if (contents) {
  const filter = one('.filter', contents);
  const input = one('input', filter);
  const lists = all('ul', contents);
  const nothing = one('.nothing', contents);
  const found = make('ul', { className: 'found' });
  const passages = make(
    'div',
    { hidden: true },
    make('p', { className: 'nav-title', textContent: 'In the text' }),
    found,
  );
  nothing.before(passages);
  filter.hidden = false;
  const links = () => all('a', contents).filter((link) => link.checkVisibility());

  input.addEventListener('input', async () => {
    const wanted = input.value.trim().toLowerCase();
    contents.classList.toggle('filtering', wanted !== '');
    for (const list of lists) {
      for (const item of list.children) item.hidden = !item.textContent.toLowerCase().includes(wanted);
      list.hidden = list.previousElementSibling.hidden = [...list.children].every((item) => item.hidden);
    }
    const listed = lists
      .flatMap((list) => all('li:not([hidden]) a', list))
      .map((link) => link.getAttribute('href'));
    const hits = wanted.length < 2 ? [] : (await search(wanted)).filter(({ href }) => !listed.includes(href));
    if (wanted !== input.value.trim().toLowerCase()) return; // typed on meanwhile
    found.replaceChildren(...hits.slice(0, MOST_FOUND).map(hitOf));
    passages.hidden = hits.length === 0;
    nothing.hidden = hits.length + listed.length > 0;
    if (wanted !== '') say(`${hits.length + listed.length} found`);
  });
  contents.addEventListener('keydown', (event) => {
    const among = links();
    const at = among.indexOf(document.activeElement);
    if (event.key === 'Enter' && event.target === input && among.length > 0) among[0].click();
    else if (event.key === 'ArrowDown' && at + 1 < among.length) among[at + 1].focus();
    else if (event.key === 'ArrowUp' && at >= 0) (among[at - 1] ?? input).focus();
    else if (event.key !== 'Escape' || input.value === '') return;
    if (['Enter', 'Escape'].includes(event.key)) {
      input.value = '';
      input.dispatchEvent(new Event('input'));
      if (event.key === 'Escape') input.focus();
    }
    event.preventDefault();
  });
  contents.addEventListener('click', (event) => {
    if (event.target.closest('a') && contents.matches(':popover-open')) contents.hidePopover();
  });
  if (document.body.classList.contains('reference')) followScrolling();
}

/** Ctrl-K anywhere, and `/` outside of fields: to the search, which the front page does not have itself. */
addEventListener('keydown', (event) => {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  const isTyping = target.closest?.('input, textarea, select') ?? null;
  const isSearch = (ctrlKey || metaKey) && !altKey ? key === 'k' : key === '/' && !altKey && !isTyping;
  if (!isSearch) return;
  event.preventDefault();
  if (contents) openSearch();
  else location.href = '/docs#search';
});
if (contents && location.hash === '#search') openSearch();

function openSearch() {
  if (getComputedStyle(one('.menu')).display !== 'none') contents.showPopover();
  one('.filter input', contents).focus();
}

/* Search */

const MOST_FOUND = 12;
const EXCERPT = 110;
let index;

/** Passages of the guides and calls in which every word stands, those with words in their title first. */
async function search(wanted) {
  index ??= fetch('/docs/search.json')
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
    .catch(() => (index = undefined)); // asked again with the next letter
  const words = wanted.split(/\s+/);
  const inTitle = ({ title }) => words.filter((word) => title.toLowerCase().includes(word)).length;
  return ((await index) ?? [])
    .map(([href, title, text]) => ({ href, title, text, words }))
    .filter(({ title, text }) => words.every((word) => `${title} ${text}`.toLowerCase().includes(word)))
    .toSorted((one, other) => inTitle(other) - inTitle(one));
}

/** A passage with the words that were found in it. */
function hitOf({ href, title, text, words }) {
  const pattern = new RegExp(
    `(${words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, '\\$&')).join('|')})`,
    'i',
  );
  const around = Math.max(0, text.search(pattern) - EXCERPT / 3);
  const at = around === 0 ? 0 : text.indexOf(' ', around) + 1;
  const end = text.indexOf(' ', at + EXCERPT);
  const excerpt = (at > 0 ? '… ' : '') + (end < 0 ? text.slice(at) : `${text.slice(at, end)} …`);
  const marked = (part) =>
    part
      .split(new RegExp(pattern, 'gi'))
      .map((piece, i) => (i % 2 ? make('mark', { textContent: piece }) : piece));
  const link = make(
    'a',
    { href },
    make('span', {}, ...marked(title)),
    make('span', { className: 'excerpt' }, ...marked(excerpt)),
  );
  return make('li', {}, link);
}

/** Marks the section being read in the contents. */
function followScrolling() {
  const links = new Map(
    all('a[href^="/docs#"]', contents).map((link) => [
      link.getAttribute('href').slice('/docs#'.length),
      link,
    ]),
  );
  const sections = [...links.keys()].map((id) => document.getElementById(id));
  let current;
  const mark = () => {
    const line = innerHeight / 3;
    const section = sections.findLast((each) => each.getBoundingClientRect().top <= line) ?? sections[0];
    const link = links.get(section.id);
    if (link === current) return;
    current?.removeAttribute('aria-current');
    current = link;
    link.setAttribute('aria-current', 'location');
    const [box, frame] = [link.getBoundingClientRect(), contents.getBoundingClientRect()];
    if (box.top < frame.top || box.bottom > frame.bottom)
      contents.scrollTop += box.top - frame.top - frame.height / 3;
  };
  let waiting = false;
  addEventListener(
    'scroll',
    () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    },
    { passive: true },
  );
  mark();
}

/* Trying calls */

/** Storage key of the section that the reader left to sign in. */
const PLACE = 'public-user-api:place';

const settings = one('#try-settings')?.dataset;
if (settings) startTrying();

function startTrying() {
  const session = new SignIn({
    issuer: location.origin,
    clientId: settings.clientId,
    redirectUri: `${location.origin}/docs`,
    scope: settings.scope,
    storage: sessionStorage, // ends with the tab
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
      const { open } = JSON.parse(form.closest('[data-call]').dataset.call);
      const hint = one('.try-hint', form);
      one('button', form).hidden = !open && !signedIn;
      if (open) hint.textContent = 'No credential is needed.';
      else if (signedIn) hint.textContent = 'With your access token.';
      else hint.replaceChildren(...(possible ? invitation() : noSignIn()));
      form.closest('.try').hidden = false;
    }
    if (text) say(text);
    if (!signedIn) return;
    const response = await call('GET', '/api/public/me').catch(() => undefined);
    who.textContent = response?.ok ? `Signed in as ${(await response.json()).display_name}` : 'Signed in';
  }

  function invitation() {
    const button = make('button', {
      type: 'button',
      className: 'button button-small',
      textContent: 'Sign in',
    });
    button.addEventListener('click', begin);
    return [
      button,
      ' to send it as yourself. A key is refused here: every browser would show it to its user. With a key, use the curl line above.',
    ];
  }

  const noSignIn = () => [
    `Signing in works at ${settings.issuer} only, over https. With a key, use the curl line above.`,
  ];

  async function begin() {
    sessionStorage.setItem(PLACE, location.hash);
    location.assign(await session.begin());
  }

  async function call(method, path, body, given = {}) {
    const headers = { ...given, ...(session.signedIn ? await session.headers(false) : {}) };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const options = { method, headers, body, cache: 'no-store' };
    return fetch(path, options);
  }

  signIn.addEventListener('click', () => void begin().catch((error) => say(error.message)));
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
    const { method, path, fixed, open } = JSON.parse(form.closest('[data-call]').dataset.call);
    const result = one('.try-result', form);
    const button = one('[type="submit"]', form);
    const { target, body, given } = requestOf(form, path, fixed);
    button.disabled = true;
    const started = performance.now();
    try {
      const response = open
        ? await fetch(target, { headers: given, cache: 'no-store' })
        : await call(method, target, body, given);
      const text = await response.text();
      const ms = Math.round(performance.now() - started);
      result.replaceChildren(...answered(response, text, ms, `${method} ${target}`));
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
      button.disabled = false;
    }
  }

  function requestOf(form, path, fixed) {
    const query = new URLSearchParams(fixed);
    const given = {};
    let target = path;
    let body;
    for (const field of form.elements) {
      const { name, value, tagName } = field;
      if (tagName === 'TEXTAREA') body = value;
      else if (name && field.dataset.place === 'path')
        target = target.replace(`{${name}}`, encodeURIComponent(value));
      else if (name && field.dataset.place === 'query' && value !== '') query.set(name, value);
      else if (name && field.dataset.place === 'header' && value !== '') given[name] = value;
    }
    return { target: query.size === 0 ? target : `${target}?${query}`, body, given };
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
    const pre = make('pre', { tabIndex: 0 }, make('code', { textContent: text }));
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

  /** Takes the code from the URL when the reader returns from signing in. */
  async function arrive() {
    const { searchParams } = new URL(location.href);
    if (!searchParams.has('state')) return undefined;
    const came = location.href;
    history.replaceState(null, '', `/docs${sessionStorage.getItem(PLACE) ?? ''}`);
    sessionStorage.removeItem(PLACE);
    one(location.hash || 'body')?.scrollIntoView();
    try {
      await session.finish(came);
      return 'Signed in';
    } catch (error) {
      return error.code === 'access_denied' ? 'You did not allow it.' : error.message;
    }
  }
}
