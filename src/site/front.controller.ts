import { readFileSync } from 'node:fs';
import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { apiNameOf, Config } from '../config/config.js';
import { EXAMPLES } from '../openapi/examples.js';
import { JsonResponse, redirectTo, UnchangingDocument } from '../http/output/responses.js';
import { Problem } from '../http/output/problems.js';
import { prefersHtml } from '../http/pipeline/accept.guard.js';
import { API_PREFIX } from '../http/pipeline/api-headers.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { makeCard } from '../layout/icons.js';
import { makeDocument, PlatformLogo } from '../member-pages/rendering/logos.controller.js';
import { SECURITY_PATH } from '../member-pages/rendering/pages.js';
import { GUIDES, Site } from './site.js';
import { writeSnippets } from './script/snippets.js';

const DAY_MS = 86_400_000;
/** Validity of security.txt in days: RFC 9116 §2.5.5 recommends less than a year. */
const SECURITY_TXT_DAYS = 180;

const PLAIN = {
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'max-age=86400',
};

/** Content of robots.txt (RFC 9309): asks crawlers to skip the APIs, members' pages and the demo. */
const ROBOTS = `User-agent: *
Disallow: /api/
Disallow: /oauth/
Disallow: /account/
Disallow: /interaction/
Disallow: /demo
`;

/** Serves the front page, and files such as robots.txt and security.txt. */
@Controller()
@Public()
@OutsideApi()
export class FrontController {
  readonly #front: UnchangingDocument;
  readonly #icon = new UnchangingDocument(readFileSync(new URL('./templates/favicon.ico', import.meta.url)), {
    ...PLAIN,
    'Content-Type': 'image/vnd.microsoft.icon',
  });
  readonly #card: UnchangingDocument;
  readonly #robots = new UnchangingDocument(ROBOTS, PLAIN);
  readonly #contents: UnchangingDocument;
  readonly #index: JsonResponse;

  constructor(
    private readonly config: Config,
    private readonly logo: PlatformLogo,
    site: Site,
  ) {
    this.#card = makeCard(config);
    this.#index = buildIndex(config);
    this.#contents = new UnchangingDocument(buildContents(config), PLAIN);
    const [example] = EXAMPLES.getMe!;
    this.#front = site.document({
      template: 'front',
      content: {
        guides: GUIDES,
        snippets: writeSnippets(example!.request, config.publicUrl, true),
        response: JSON.stringify(example!.response.body, null, 2),
      },
    });
  }

  @Get()
  front(): UnchangingDocument {
    return this.#front;
  }

  /** Redirects requests that prefer HTML to the reference; others get links to descriptions of the API. */
  @Get(API_PREFIX)
  api(@Req() request: Request, @Res({ passthrough: true }) response: Response): JsonResponse {
    if (prefersHtml(request)) redirectTo(response, 303, '/docs');
    return this.#index;
  }

  /** Redirects a path that health checks often use. */
  @Get('health')
  health(@Res() response: Response): void {
    redirectTo(response, 303, '/readyz');
  }

  @Get('favicon.ico')
  icon(): UnchangingDocument {
    return this.#icon;
  }

  /** Open Graph image: the platform's logo if it is loaded and is PNG or JPEG, else a generated card. */
  @Get('social-card')
  card(): UnchangingDocument {
    const { image } = this.logo;
    return image && ['image/png', 'image/jpeg'].includes(image.type) ? makeDocument(image) : this.#card;
  }

  @Get('robots.txt')
  robots(): UnchangingDocument {
    return this.#robots;
  }

  /** Lists the documents for language models (llmstxt.org). */
  @Get('llms.txt')
  contents(): UnchangingDocument {
    return this.#contents;
  }

  /** Serves security.txt (RFC 9116). @throws Problem not_found if no contact is configured */
  @Get('.well-known/security.txt')
  security(): UnchangingDocument {
    const { securityContact, publicUrl } = this.config;
    if (securityContact === undefined) throw new Problem('not_found');
    const expires = new Date(Math.ceil(Date.now() / DAY_MS + SECURITY_TXT_DAYS) * DAY_MS);
    const text = [
      `Contact: ${securityContact}`,
      `Expires: ${expires.toISOString().replace('.000', '')}`,
      'Preferred-Languages: en',
      `Canonical: ${publicUrl}/.well-known/security.txt`,
      '',
    ].join('\n');
    return new UnchangingDocument(text, PLAIN);
  }

  /** W3C, “A Well-Known URL for Changing Passwords”. @throws Problem not_found if there is no page for it */
  @Get('.well-known/change-password')
  changePassword(@Res() response: Response): void {
    const { passwordResetUrl, localSignIn } = this.config;
    const target = passwordResetUrl ?? (localSignIn ? SECURITY_PATH : undefined);
    if (target === undefined) throw new Problem('not_found');
    redirectTo(response, 302, target);
  }
}

function buildIndex({ publicUrl }: Config): JsonResponse {
  return JsonResponse.unchanging({
    openapi: `${publicUrl}${API_PREFIX}/openapi.json`,
    documentation: `${publicUrl}/docs`,
    problems: `${publicUrl}${API_PREFIX}/problems`,
    authorization_server: `${publicUrl}/.well-known/oauth-authorization-server`,
    protected_resource: `${publicUrl}/.well-known/oauth-protected-resource${API_PREFIX}`,
  });
}

function buildContents(config: Config): string {
  const { publicUrl, assistants } = config;
  const guides = GUIDES.map(
    ({ name, title, summary }) => `- [${title}](${publicUrl}/docs/${name}.md): ${summary}`,
  );
  return `# ${apiNameOf(config)}

> A member’s own profile, events, connections and achievements, for the apps and assistants that the member allows.

- [OpenAPI](${publicUrl}/api/public/openapi.json): all requests, with examples
${assistants ? `- Model Context Protocol: ${publicUrl}/api/public/mcp\n` : ''}
## Guides

${guides.join('\n')}
`;
}
