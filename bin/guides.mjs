// Renders the guides for callers, shown at /docs: HTML from the Markdown files in docs/.
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** In the order of the menu: name, title, file, and a description. */
const GUIDES = [
  [
    'first-program',
    'A first program',
    'docs/developers/first-program.md',
    'All events of a member, in TypeScript, Python and Go.',
  ],
  [
    'signing-in',
    'Signing members in',
    'docs/developers/oauth.md',
    'OAuth and OpenID Connect: the rules of sign-in.',
  ],
  ['browser-app', 'A browser app', 'docs/developers/browser-app.md', 'Sign-in in a page, step by step.'],
  [
    'mobile-app',
    'A mobile app',
    'docs/developers/mobile-app.md',
    'Sign-in on iOS and Android, with AppAuth.',
  ],
  [
    'backend',
    'A backend',
    'docs/developers/backend.md',
    'Store a key, keep a copy, retry, change the key without downtime.',
  ],
  [
    'confidential-clients',
    'Frameworks with a secret',
    'docs/developers/confidential-clients.md',
    'ASP.NET Core, Spring, Auth.js, Passport and oauth2-proxy.',
  ],
  [
    'assistants',
    'Assistants',
    'docs/developers/assistants.md',
    'Your data in Claude, ChatGPT, VS Code or Cursor, through one URL.',
  ],
  ['webhooks', 'Webhooks', 'docs/developers/webhooks.md', 'Get a signed message for each change.'],
  ['calendar', 'Calendar links', 'docs/developers/calendar.md', 'A member’s events in a calendar app.'],
  [
    'paging-and-sync',
    'Paging and sync',
    'docs/developers/paging-and-sync.md',
    'Read a whole list, then only the changes.',
  ],
  ['times', 'Times', 'docs/developers/times.md', 'UTC, local times of events, and time parameters.'],
  ['caching', 'Caching', 'docs/developers/caching.md', 'ETags: fewer bytes, and no lost updates.'],
  ['limits', 'Limits', 'docs/developers/limits.md', 'Requests per minute, remaining requests, and waiting.'],
  ['errors', 'Errors', 'docs/developers/errors.md', 'Every error code with its meaning and fix.'],
  [
    'typescript',
    'TypeScript client',
    'clients/typescript/README.md',
    'For browsers and Node, without dependencies.',
  ],
  ['python', 'Python client', 'clients/python/README.md', 'For partners’ backends, sync and async.'],
  ['go', 'Go client', 'clients/go/README.md', 'For backends, using only the standard library.'],
  [
    'libraries',
    'Libraries',
    'docs/developers/libraries.md',
    'OAuth libraries in seven languages, tested with this server.',
  ],
  ['changelog', 'What is new', 'CHANGELOG.md', 'Changes of each version, for callers and operators.'],
];

/** The Markdown files. */
export const GUIDE_SOURCES = GUIDES.map(([, , source]) => source);

/** Needs the scripts of `dist/`. @returns the text of dist/docs/guides.json */
export async function renderGuides() {
  const { Marked } = await import('marked');
  const { Eta } = await import('eta');
  const { highlight } = await import('../dist/src/site/highlight.js');
  const eta = new Eta({ views: join(ROOT, 'src/site/templates'), autoEscape: true });
  /** Code in tabs, as in the API reference: `id` identifies the tabs; `snippets` are `{ language, title, code }`. */
  const tabsOf = (id, snippets) => eta.render('./request', { id, what: 'Code', snippets, highlight });
  return JSON.stringify(GUIDES.map((guide) => render(guide, Marked, highlight, tabsOf)));
}

/** Info string of a fence → title, and the language that the pages' script remembers: the choice of JavaScript also selects TypeScript. */
const LANGUAGES = {
  '': ['Text'],
  csharp: ['C#'],
  go: ['Go'],
  java: ['Java'],
  js: ['JavaScript', 'javascript'],
  json: ['JSON'],
  kotlin: ['Kotlin'],
  php: ['PHP'],
  properties: ['Properties'],
  python: ['Python'],
  ruby: ['Ruby'],
  rust: ['Rust'],
  sh: ['Shell'],
  swift: ['Swift'],
  ts: ['TypeScript', 'javascript'],
};

function languageOf(info) {
  const [title, language = info] = LANGUAGES[info] ?? [];
  if (title === undefined) throw new Error(`Guides have no name for code in ${info}: bin/guides.mjs`);
  return { title, language };
}

/** Languages of snippets other than programs. */
const ALONE = ['', 'json', 'properties', 'sh'];

/** Turns consecutive programs (with only comments in between) into one token `tabs`, since they show the same in several languages. */
function withTabs(tokens) {
  const joined = [];
  for (const token of tokens.filter(({ type }) => type !== 'html')) {
    const before = joined.findLast(({ type }) => type !== 'space');
    const languages = before?.codes?.map(({ lang }) => lang) ?? ALONE;
    if (token.type === 'list') for (const item of token.items) item.tokens = withTabs(item.tokens);
    if (token.type !== 'code') joined.push(token);
    else if ([...ALONE, ...languages].includes(token.lang) || ALONE.includes(languages[0]))
      joined.push({ type: 'tabs', raw: token.raw, codes: [token] });
    else before.codes.push(token);
  }
  return joined;
}

function render([name, title, source, summary], Marked, highlight, tabsOf) {
  let tabs = 0;
  const sections = [];
  const named = new Map();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        if (depth === 1) return ''; // the page has its own title
        const name = text
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
          .replaceAll(/^-|-$/g, '');
        const times = (named.get(name) ?? 0) + 1;
        named.set(name, times);
        const id = times === 1 ? name : `${name}-${times}`;
        if (depth === 2) sections.push({ id, title: text.replaceAll('`', '') });
        const inner = this.parser.parseInline(tokens);
        return `<h${depth} id="${id}"><a class="anchor" href="#${id}">${inner}</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens);
        const target = addressOf(href, source);
        return target === undefined ? inner : `<a href="${target}">${inner}</a>`;
      },
    },
    extensions: [
      {
        name: 'tabs',
        renderer({ codes }) {
          const snippets = codes.map(({ text, lang = '' }) => ({ ...languageOf(lang), code: text }));
          if (snippets.length > 1) return tabsOf(`code-${++tabs}`, snippets);
          const [{ title, code }] = snippets;
          return `<div class="code"><p class="code-title">${title}</p><pre tabindex="0" aria-label="${title}"><code>${highlight(code)}</code></pre></div>\n`;
        },
      },
    ],
    hooks: { processAllTokens: withTabs }, // also removes comments, which are for editors of the file
  });
  const text = readFileSync(join(ROOT, source), 'utf8');
  const html = marked
    .parse(text)
    .replaceAll(
      /<table>[^]*?<\/table>/g,
      (table) => `<div class="table" tabindex="0">${labelled(table)}</div>`,
    )
    .replaceAll('<th>', '<th scope="col">')
    // The API reference links to rows of the table of errors.
    .replaceAll(/<tr>(\n<td[^>]*>\d{3}<\/td>\n<td[^>]*><code>(\w+)<\/code>)/g, '<tr id="$2">$1');
  const markdown = markdownOf(text, source);
  return { name, title, summary, source, html, markdown, sections, passages: passagesOf(html) };
}

/** Adds the column heading to each cell, because phones show each row as a card. */
function labelled(table) {
  const heads = [...table.matchAll(/<th>([^]*?)<\/th>/g)].map(([, head]) => head.replaceAll(/<[^>]+>/g, ''));
  let cell = 0;
  return table.replaceAll('<td>', () => `<td data-label="${heads[cell++ % heads.length]}">`);
}

/** The searchable texts: below each heading, and of each row with an anchor. Code is excluded, because it matches too many searches. */
function passagesOf(html) {
  const parts = html
    .replaceAll(/<pre[^]*?<\/pre>/g, ' ')
    .split(/(?=<(?:h[2-6]|tr) id=")/)
    .map((part) => [/^<(?:h\d|tr) id="([^"]+)">(?:<a[^>]*>)?([^]*?)<\/(?:h\d|td)>/.exec(part), part]);
  return parts.map(([heading, part]) => {
    const [whole = '', id = '', title = ''] = heading ?? [];
    const isRow = whole.startsWith('<tr');
    return {
      id,
      title: isRow ? id : plain(title),
      text: plain(isRow ? part.slice(0, part.indexOf('</tr>')) : part.slice(whole.length)),
    };
  });
}

const ENTITIES = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
const plain = (html) =>
  html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/&\w+;|&#39;/g, (entity) => ENTITIES[entity] ?? ' ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ (?=[.,;:)])/g, '')
    .trim();

/** The served Markdown: with links that work on the server, and without comments for editors. */
function markdownOf(text, source) {
  return text
    .replaceAll(/<!--[^]*?-->\s*/g, '')
    .replaceAll(/```[^]*?```|\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, shown, href) => {
      if (href === undefined) return whole;
      const target = addressOf(href, source);
      return target === undefined ? shown : `[${shown}](${target.replace(/^(\/docs\/[^#]+)/, '$1.md')})`;
    });
}

/** A link's URL on the server; undefined if the server does not show the linked file. */
function addressOf(href, source) {
  if (/^(https?:|mailto:|#|\/)/.test(href)) return href;
  const [path, fragment] = href.split('#');
  const file = normalize(join(dirname(source), path));
  const guide = GUIDES.find(([, , each]) => each === file);
  return guide && `/docs/${guide[0]}${fragment === undefined ? '' : `#${fragment}`}`;
}
