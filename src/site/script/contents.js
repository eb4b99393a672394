// The table of contents of the reference and the guides: filters it, searches all pages, and marks the current section.
import { all, make, one, say } from './page.js';

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
    if (wanted !== input.value.trim().toLowerCase()) return; // the reader has typed more
    found.replaceChildren(...hits.slice(0, MAX_FOUND).map(hitOf));
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

/** Ctrl-K, or `/` outside of fields, opens the search; the front page redirects to the search of the reference. */
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

const MAX_FOUND = 12;
const EXCERPT = 110;
let index;

/** Finds passages of the guides and operations with every word; those with the most words in the title are first. */
async function search(wanted) {
  index ??= fetch('/docs/search.json')
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
    .catch(() => (index = undefined)); // the next letter loads the index again
  const words = wanted.split(/\s+/);
  const inTitle = ({ title }) => words.filter((word) => title.toLowerCase().includes(word)).length;
  return ((await index) ?? [])
    .map(([href, title, text]) => ({ href, title, text, words }))
    .filter(({ title, text }) => words.every((word) => `${title} ${text}`.toLowerCase().includes(word)))
    .toSorted((one, other) => inTitle(other) - inTitle(one));
}

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
