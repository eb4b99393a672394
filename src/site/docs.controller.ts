import { Controller, Get, Param } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { SCOPES } from '../auth/scopes.js';
import { apiNameOf, Config } from '../config/config.js';
import { EXAMPLES, RECORDED_AT } from '../openapi/examples.js';
import { OpenApiDocument } from '../openapi/openapi-document.js';
import { listEndpoints, type Endpoint } from '../openapi/reference.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { Problem, PROBLEMS } from '../http/output/problems.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { DOCS_CLIENT } from '../clients/own-clients.js';
import { writeFeed } from './feed.js';
import { GUIDES, Site, type SitePage } from './site.js';
import { writeSnippets } from './script/snippets.js';

const TEXT = { 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' };

/** Maximum lines of an expanded response; the page collapses longer responses. */
const MAX_LINES = 100;

const CHANGES = 'changelog';

/** Serves the reference of both APIs, the guides, and their search index. */
@Controller('docs')
@Public()
@OutsideApi()
export class DocsController {
  readonly #documents = new Map<string, UnchangingDocument>();

  constructor(
    private readonly config: Config,
    private readonly document: OpenApiDocument,
    private readonly site: Site,
  ) {}

  /** The reference, which is also the redirect URI for readers who sign in to try requests. */
  @Get()
  reference(): UnchangingDocument {
    const { rateLimits } = this.config;
    const scopes = Object.entries(SCOPES);
    return this.#page('', () => ({
      template: 'reference',
      title: 'Reference',
      content: { rateLimits, clientId: DOCS_CLIENT, scopes, problems: PROBLEMS, maxLines: MAX_LINES },
    }));
  }

  /** The search index: `[path, title, text]` of each operation, and of each passage of a guide except the changelog. */
  @Get('search.json')
  search(): UnchangingDocument {
    return this.#file('search.json', 'application/json', () => {
      const passages = GUIDES.filter(({ name }) => name !== CHANGES).flatMap((guide) =>
        guide.passages.map(({ id, title, text }) => [
          `/docs/${guide.name}${id === '' ? '' : `#${id}`}`,
          title === '' ? guide.title : `${guide.title}: ${title}`,
          text,
        ]),
      );
      const calls = this.#groups().flatMap((group) =>
        group.calls.map(({ name, summary, method, path, description, parameters, answer }) => [
          `/docs#${name}`,
          summary,
          [`${method} ${path}`, description, ...[...parameters, ...answer].map((field) => field.name)].join(
            ' ',
          ),
        ]),
      );
      return JSON.stringify([...calls, ...passages]);
    });
  }

  @Get(`${CHANGES}.atom`)
  feed(): UnchangingDocument {
    return this.#file(`${CHANGES}.atom`, 'application/atom+xml', () => {
      const { html } = GUIDES.find(({ name }) => name === CHANGES)!;
      const page = `${this.config.publicUrl}/docs/${CHANGES}`;
      return writeFeed(apiNameOf(this.config), page, this.#here(html));
    });
  }

  /** A guide as a page, or with `.md` as Markdown. @throws Problem not_found */
  @Get(':guide')
  guide(@Param('guide') name: string): UnchangingDocument {
    const guide = GUIDES.find((each) => each.name === name.replace(/\.md$/, ''));
    if (!guide) throw new Problem('not_found');
    if (name.endsWith('.md')) return this.#file(name, 'text/markdown', () => this.#here(guide.markdown));
    return this.#page(
      name,
      () => ({
        template: 'guide',
        title: guide.title,
        content: {
          guide: { ...guide, html: this.#here(guide.html) },
          feed: name === CHANGES ? `/docs/${CHANGES}.atom` : undefined,
          before: GUIDES[GUIDES.indexOf(guide) - 1],
          after: GUIDES[GUIDES.indexOf(guide) + 1],
        },
      }),
      { Link: `</docs/${name}.md>; rel="alternate"; type="text/markdown"` },
    );
  }

  #page(name: string, make: () => SitePage, headers: Record<string, string> = {}): UnchangingDocument {
    return this.#made(name, () => {
      const page = make();
      const content = { guides: GUIDES, groups: this.#groups(), ...page.content };
      return this.site.document({ ...page, content }, headers);
    });
  }

  #file(name: string, type: string, write: () => string): UnchangingDocument {
    const headers = { ...TEXT, 'Content-Type': `${type}; charset=utf-8` };
    return this.#made(name, () => new UnchangingDocument(write(), headers));
  }

  #made(name: string, make: () => UnchangingDocument): UnchangingDocument {
    let document = this.#documents.get(name);
    if (!document) this.#documents.set(name, (document = make()));
    return document;
  }

  /** Operations by group, with code for a request in each language, and recorded responses. */
  #groups() {
    const documents = [this.document.read('members'), this.document.read('platform')] as {
      tags: { name: string; description: string }[];
    }[];
    const endpoints = documents.flatMap((document) => listEndpoints(document));
    const tags = new Map(
      documents.flatMap((each) => each.tags).map(({ name, description }) => [name, description]),
    );
    return [...tags]
      .map(([name, description]) => ({
        name,
        description,
        calls: endpoints.filter(({ tag }) => tag === name).map((endpoint) => this.#callOf(endpoint)),
      }))
      .toSorted((one, other) => Number(isOpen(one.calls)) - Number(isOpen(other.calls)));
  }

  #callOf(endpoint: Endpoint) {
    const { publicUrl } = this.config;
    const examples = (EXAMPLES[endpoint.name] ?? []).map(({ name, summary, request, response }) => ({
      name,
      summary,
      request,
      status: response.status,
      headers: Object.entries(response.headers).map(([header, value]) => [header, this.#here(value)]),
      body: this.#here(JSON.stringify(response.body, null, 2)),
    }));
    const { method, path, scope } = endpoint;
    const bare = { method: method as 'GET' | 'PUT' | 'POST', path };
    const request = examples[0]?.request ?? bare;
    return {
      ...endpoint,
      snippets: writeSnippets(request, publicUrl, scope !== undefined),
      examples,
      example: request,
      filledIn: valuesIn(request.path, path),
    };
  }

  #here(text: string): string {
    return text.replaceAll(RECORDED_AT, this.config.publicUrl);
  }
}

function isOpen(calls: readonly Pick<Endpoint, 'scope'>[]): boolean {
  return calls.every(({ scope }) => scope === undefined);
}

/** Returns the values of the query and of path parameters such as `{id}`. */
function valuesIn(request: string, template: string): Record<string, string> {
  const { pathname, searchParams } = new URL(request, 'http://any');
  const parts = pathname.split('/');
  const places = template.split('/').flatMap((part, i) => {
    const [, name] = /^\{(\w+)\}$/.exec(part) ?? [];
    return name === undefined ? [] : [[name, decodeURIComponent(parts[i]!)]];
  });
  return Object.fromEntries([...searchParams, ...places]) as Record<string, string>;
}
