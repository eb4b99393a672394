import { Injectable } from '@nestjs/common';
import type { Access } from '../auth/auth.decorators.js';
import { accessOf } from '../auth/auth.guards.js';
import { isPlatformScope, SCOPES } from '../auth/scopes.js';
import { apiNameOf, Config } from '../config/config.js';
import { VERSION } from '../config/version.js';
import { queryOfHandler } from '../http/input/query.js';
import { JsonResponse } from '../http/output/responses.js';
import { describeOperation, describeParameters, type RequestBody } from '../http/output/openapi.js';
import { schemasUsedBy } from '../model/json-schema.js';
import { API_PREFIX, isUnder, PLATFORM_PREFIX } from '../http/pipeline/api-headers.js';
import { isOutsideApi } from '../http/pipeline/outside-api.js';
import { RouteTable, type Route } from '../http/route-table.js';
import { ABOUT } from '../resources/resources.js';
import { HEADERS, PLATFORM_PROBLEM, PROBLEM } from './components.js';
import { EXAMPLES, RECORDED_AT, type Example } from './examples.js';
import { addLinks } from './links.js';
import { listCodes, DECLARED, describeResponses, sharedResponses } from './responses.js';
import { WEBHOOKS } from './webhooks.js';

type Json = Record<string, unknown>;
type Audience = 'members' | 'platform';

/** The two OpenAPI 3.1 documents: the API for members' data, and the API for the platform's backend. */
@Injectable()
export class OpenApiDocument {
  readonly #answers = new Map<Audience, JsonResponse>();

  constructor(
    private readonly config: Config,
    private readonly routeTable: RouteTable,
  ) {}

  answer(audience: Audience): JsonResponse {
    const made = this.#answers.get(audience);
    if (made) return made;
    const answer = JsonResponse.unchanging(audience === 'members' ? this.#ofMembers() : this.#ofPlatform());
    this.#answers.set(audience, answer);
    return answer;
  }

  read(audience: Audience): Json {
    return JSON.parse(String(this.answer(audience).json)) as Json;
  }

  #ofPlatform(): Json {
    const info = {
      title: `${apiNameOf(this.config)}, for the platform`,
      description:
        'The API for the platform’s own backend, which feeds the data of all members. `pua keys create --platform` issues its keys, ' +
        'which belong to no member and give no access to `/api/public`. Errors are `application/problem+json` (RFC 9457) with a `code`.',
    };
    const securitySchemes = { api_key: apiKey('Key of the platform’s backend') };
    return this.#build(PLATFORM_PREFIX, info, PLATFORM_PROBLEM, securitySchemes);
  }

  #ofMembers(): Json {
    const { publicUrl } = this.config;
    const info = {
      title: apiNameOf(this.config),
      description:
        'A member’s own profile, events, connections and achievements. Each response contains only data of the member ' +
        'who owns the access token or API key. Times are UTC, `YYYY-MM-DD HH:MM:SS`. Errors are ' +
        '`application/problem+json` (RFC 9457) with a `code`.',
    };
    return this.#build(API_PREFIX, info, PROBLEM, {
      api_key: apiKey('Key of a partner’s backend'),
      oauth2: {
        type: 'oauth2',
        description: 'The member signs in: authorization code flow with PKCE (S256).',
        flows: {
          authorizationCode: {
            authorizationUrl: `${publicUrl}/oauth/authorize`,
            tokenUrl: `${publicUrl}/oauth/token`,
            refreshUrl: `${publicUrl}/oauth/token`,
            scopes: SCOPES,
          },
        },
      },
    });
  }

  /** Builds the document; JSON omits undefined properties. @throws Error for an API route without a declared response */
  #build(prefix: string, info: Json, problem: Json, securitySchemes: Json): Json {
    const { publicUrl, supportUrl = `${publicUrl}/` } = this.config;
    const email = /^mailto:(.*)/.exec(supportUrl)?.[1];
    const contact = { name: 'Support', ...(email === undefined ? { url: supportUrl } : { email }) };
    const routes = this.routeTable.routes.filter(
      ({ path, controller }) => isUnder(prefix, path) && !isOutsideApi(controller),
    );
    const paths: Record<string, Record<string, Json>> = {};
    for (const route of routes) {
      const path = pathOf(route);
      (paths[path] ??= {})[route.method.toLowerCase()] = this.#operation(route);
    }
    const used = Object.values(paths).flatMap((item) =>
      Object.values(item).flatMap(({ tags }) => tags as string[]),
    );
    const tags = [...new Set([...Object.keys(TAGS), ...used])].filter((name) => used.includes(name));
    const schemas = { ...schemasUsedBy([paths, problem]), Problem: problem };
    const responses = sharedResponses(
      routes,
      routes.flatMap((route) => this.#examplesOf(route)),
    );
    addLinks(paths as never, schemas, responses as never);
    const inPaths = JSON.stringify(paths);
    const headers = Object.entries(HEADERS);
    return {
      openapi: '3.1.0',
      info: { ...info, version: VERSION, contact, license: LICENSE },
      servers: [{ url: publicUrl }],
      tags: tags.map((name) => ({ name, description: TAGS[name] ?? name })),
      paths,
      webhooks: prefix === API_PREFIX ? WEBHOOKS : undefined,
      components: {
        securitySchemes,
        schemas,
        responses,
        headers: Object.fromEntries(
          headers.filter(([name]) => inPaths.includes(`#/components/headers/${name}"`)),
        ),
      },
      'x-response-headers': Object.fromEntries(headers.filter(([name]) => !DECLARED.includes(name))),
      externalDocs: { description: 'Reference and guides', url: `${publicUrl}/docs` },
    };
  }

  #operation(route: Route): Json {
    const { handler, controller, method } = route;
    const { summary, description, response, parameters, body, deprecation } = describeOperation(handler);
    const path = pathOf(route);
    if (!response) throw new Error(`${method} ${path} declares no response`);
    const access = accessOf(handler, controller)!;
    const query = queryOfHandler(handler);
    const same = this.#otherFormOf(route);
    const examples = this.#examplesOf(route);
    return {
      operationId: handler.name,
      tags: [tagOf(path)],
      summary,
      description: same ? `${description} Returns the same response as \`${same}\`.` : description,
      ...deprecation,
      security: securityOf(access),
      'x-required-scope': access === 'public' ? undefined : access,
      'x-same-as': same,
      'x-problems': listCodes(route),
      parameters: [
        ...parameters,
        ...describeParameters(query),
        ...(method === 'GET' && access !== 'public' ? [IF_NONE_MATCH] : []),
      ],
      requestBody: body && withExample(body, examples),
      responses: describeResponses(route, examples),
    };
  }

  /** Returns the path and query that select the route's view on another route; undefined if there are none. */
  #otherFormOf({ controller, handler, path }: Route): string | undefined {
    for (const other of this.routeTable.routes.filter((one) => one.controller === controller)) {
      const accepted = queryOfHandler(other.handler);
      if (typeof accepted === 'function') continue;
      const { by, absent, values } = accepted;
      if (absent.handler === handler.name) return other.path;
      const [value] = Object.entries(values).find(([, view]) => view.handler === handler.name) ?? [];
      const inPath = Array.from(path.matchAll(/:(\w+)/g), ([, name]) => `&${name}={${name}}`).join('');
      if (value !== undefined) return `${other.path}?${by}=${value}${inPath}`;
    }
    return undefined;
  }

  /** The recorded examples of the route, with URLs of this server. */
  #examplesOf({ handler }: Route): Example[] {
    const recorded = JSON.stringify(EXAMPLES[handler.name] ?? []);
    return JSON.parse(recorded.replaceAll(RECORDED_AT, this.config.publicUrl)) as Example[];
  }
}

function apiKey(whose: string): Json {
  const description = `${whose}. For servers only: the server rejects keys that a browser sends.`;
  return { type: 'apiKey', in: 'header', name: 'X-API-Key', description };
}

function securityOf(access: Access): Json[] {
  if (access === 'public') return [];
  if (isPlatformScope(access ?? '')) return [{ api_key: [] }];
  return [{ api_key: [] }, { oauth2: access === null ? [] : [access] }];
}

const IF_NONE_MATCH: Json = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  schema: { type: 'string' },
  description: 'ETag of an earlier response',
};

/** Describes the route's body, with the body of the first example that has one. */
function withExample(body: RequestBody, examples: readonly Example[]): Json {
  const value = examples.find(({ request }) => request.body !== undefined)?.request.body;
  const content = Object.entries(body.content).map(([type, { schema }]) => [
    type,
    { schema, examples: value && { changes: { value } } },
  ]);
  return { ...body, content: Object.fromEntries(content) as Json };
}

function pathOf({ path }: Route): string {
  return path.replace(/:(\w+)/g, '{$1}');
}

/** License of the API in the documents; it grants no rights. */
const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' };

const TAGS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Array.from(ABOUT, ([name, about]) => [capitalized(name), about])),
  Sync: 'Changes of the member’s data, to keep a copy up to date.',
  Credential: 'The credential that the request sent, and the requests that it allows.',
  Platform: 'Requests for the platform’s own backend, with its own keys.',
  Documents: 'Descriptions of the API itself. No credential is needed.',
};

/** Returns the name of the path's group, or the first segment after `/api/public`. */
function tagOf(path: string): string {
  if (isUnder(PLATFORM_PREFIX, path) && !path.endsWith('.json')) return 'Platform';
  const [segment = ''] = path.split('/').slice(3);
  const groups: Readonly<Record<string, string>> = {
    me: 'Profile',
    'openapi.json': 'Documents',
    problems: 'Documents',
  };
  return groups[segment] ?? capitalized(segment);
}

function capitalized(word: string): string {
  return word.replace(/^./, (letter) => letter.toUpperCase());
}
