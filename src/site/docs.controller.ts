import { Controller, Get, Param } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import { SCOPES } from '../auth/scopes.js';
import { Config } from '../config/config.js';
import { EXAMPLES, RECORDED_AT } from '../features/openapi/examples.js';
import { OpenApiDocument } from '../features/openapi/openapi-document.js';
import { endpointsOf, type Endpoint } from '../features/openapi/reference.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { Problem, PROBLEMS } from '../http/output/problems.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { DOCS_CLIENT } from '../clients/own-clients.js';
import { GUIDES, Site, type SitePage } from './site.js';
import { snippetsOf } from './snippets.js';

/** The reference, generated from the OpenAPI document and the demo's recorded responses, and the guides for callers. */
@Controller('docs')
@Public()
@OutsideApi()
export class DocsController {
  readonly #pages = new Map<string, UnchangingDocument>();

  constructor(
    private readonly config: Config,
    private readonly document: OpenApiDocument,
    private readonly site: Site,
  ) {}

  /** Also the redirect URI for readers who sign in to try a call: the script reads the code from the URL. */
  @Get()
  reference(): UnchangingDocument {
    const { rateLimits } = this.config;
    const scopes = Object.entries(SCOPES);
    return this.#document('', () => ({
      template: 'reference',
      title: 'Reference',
      content: { rateLimits, clientId: DOCS_CLIENT, scopes, problems: PROBLEMS },
    }));
  }

  /** A guide as a page, or with `.md` as Markdown. @throws Problem not_found */
  @Get(':guide')
  guide(@Param('guide') name: string): UnchangingDocument {
    const guide = GUIDES.find((each) => each.name === name.replace(/\.md$/, ''));
    if (!guide) throw new Problem('not_found');
    if (name.endsWith('.md')) return this.#markdownOf(name, guide.markdown);
    return this.#document(
      name,
      () => ({
        template: 'guide',
        title: guide.title,
        content: { guide: { ...guide, html: this.#here(guide.html) } },
      }),
      { Link: `</docs/${name}.md>; rel="alternate"; type="text/markdown"` },
    );
  }

  #markdownOf(name: string, markdown: string): UnchangingDocument {
    const known = this.#pages.get(name);
    if (known) return known;
    const document = new UnchangingDocument(this.#here(markdown), {
      'Content-Type': 'text/markdown; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff',
    });
    this.#pages.set(name, document);
    return document;
  }

  /** A page, made when it is first asked for; all list the guides and the calls. */
  #document(name: string, make: () => SitePage, headers: Record<string, string> = {}): UnchangingDocument {
    let document = this.#pages.get(name);
    if (!document) {
      const page = make();
      const content = { guides: GUIDES, groups: this.#groups(), ...page.content };
      this.#pages.set(name, (document = this.site.document({ ...page, content }, headers)));
    }
    return document;
  }

  /** The calls by group, each with its request in every language and the demo's responses. */
  #groups() {
    const documents = [this.document.read('members'), this.document.read('platform')] as {
      tags: { name: string; description: string }[];
    }[];
    const endpoints = documents.flatMap((document) => endpointsOf(document));
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
    const { method, path, scope, fixed } = endpoint;
    const bare = { method: method as 'GET' | 'PUT' | 'POST', path };
    const request = examples[0]?.request ?? bare;
    return {
      ...endpoint,
      shownPath: path + (Object.keys(fixed).length === 0 ? '' : `?${new URLSearchParams(fixed).toString()}`),
      snippets: snippetsOf(request, publicUrl, scope !== undefined),
      examples,
      example: request,
    };
  }

  #here(text: string): string {
    return text.replaceAll(RECORDED_AT, this.config.publicUrl);
  }
}

function isOpen(calls: readonly Pick<Endpoint, 'scope'>[]): boolean {
  return calls.every(({ scope }) => scope === undefined);
}
