import { Injectable } from '@nestjs/common';
import type { Access } from '../../auth/auth.decorators.js';
import { accessOf, isServedByReplicas } from '../../auth/auth.guards.js';
import { isPlatformScope, SCOPES } from '../../auth/scopes.js';
import { apiNameOf, Config } from '../../config/config.js';
import { VERSION } from '../../config/version.js';
import type { QueryClass } from '../../http/input/parameters.js';
import { queryOfHandler } from '../../http/input/query.js';
import { JsonResponse } from '../../http/output/responses.js';
import { operationOf, type DescribedParameter, type RequestBody } from '../../http/output/openapi.js';
import { PROBLEMS, type ProblemCode } from '../../http/output/problems.js';
import { propertiesOf, schemasUsedBy, type JsonSchema } from '../../http/output/schema.js';
import { API_PREFIX, isUnder, PLATFORM_PREFIX } from '../../http/pipeline/api-headers.js';
import { isOutsideApi } from '../../http/pipeline/outside-api.js';
import { RouteTable, type Route } from '../../http/route-table.js';
import { ABOUT } from '../../resources/resources.js';
import { HEADERS, PLATFORM_PROBLEM, PROBLEM } from './components.js';
import { EXAMPLES, RECORDED_AT, type Example } from './examples.js';

type Json = Record<string, unknown>;
/** Who holds the credentials of the calls: members, or the platform's own backend. */
type Audience = 'members' | 'platform';

/** The OpenAPI 3.1 documents of the running application: one of the routes for members' credentials, one of those for the platform's keys. */
@Injectable()
export class OpenApiDocument {
  readonly #answers = new Map<Audience, JsonResponse>();

  constructor(
    private readonly config: Config,
    private readonly routeTable: RouteTable,
  ) {}

  /** Made when it is first asked for. */
  answer(audience: Audience): JsonResponse {
    const made = this.#answers.get(audience);
    if (made) return made;
    const answer = JsonResponse.unchanging(audience === 'members' ? this.#ofMembers() : this.#ofPlatform());
    this.#answers.set(audience, answer);
    return answer;
  }

  /** The document as its readers get it: plain JSON, a fresh copy. */
  read(audience: Audience): Json {
    return JSON.parse(String(this.answer(audience).json)) as Json;
  }

  #ofPlatform(): Json {
    const info = {
      title: `${apiNameOf(this.config)}, for the platform`,
      description:
        'The API for the platform’s own backend, which feeds the data of all members. Keys are issued by `pua keys create --platform`, ' +
        'belong to no member, and give no access to `/api/public`. Errors are `application/problem+json` (RFC 9457) with a `code`.',
    };
    const securitySchemes = { api_key: apiKey('Key of the platform’s backend') };
    return this.#build(PLATFORM_PREFIX, info, PLATFORM_PROBLEM, securitySchemes);
  }

  #ofMembers(): Json {
    const { publicUrl } = this.config;
    const info = {
      title: apiNameOf(this.config),
      description:
        'A member’s own profile, events, connections and achievements. Every response holds only data of the member ' +
        'whose access token or API key is sent. Times are UTC, `YYYY-MM-DD HH:MM:SS`. Errors are ' +
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

  /**
   * Builds the document, in which what is undefined is left out when it becomes JSON.
   *
   * @throws Error for a route of the API whose decorators do not say what it responds with
   */
  #build(prefix: string, info: Json, problem: Json, securitySchemes: Json): Json {
    const { publicUrl, supportUrl = `${publicUrl}/` } = this.config;
    const email = /^mailto:(.*)/.exec(supportUrl)?.[1];
    const contact = { name: 'Support', ...(email === undefined ? { url: supportUrl } : { email }) };
    const paths: Record<string, Record<string, Json>> = {};
    for (const route of this.routeTable.routes) {
      if (!isUnder(prefix, route.path) || isOutsideApi(route.controller)) continue;
      const path = route.path.replace(/:(\w+)/g, '{$1}');
      (paths[path] ??= {})[route.method.toLowerCase()] = this.#operation(route, path);
    }
    const used = Object.values(paths).flatMap((item) =>
      Object.values(item).flatMap(({ tags }) => tags as string[]),
    );
    const tags = [...new Set([...Object.keys(TAGS), ...used])].filter((name) => used.includes(name));
    return {
      openapi: '3.1.0',
      info: { ...info, version: VERSION, contact, license: LICENSE },
      servers: [{ url: publicUrl }],
      tags: tags.map((name) => ({ name, description: TAGS[name] ?? name })),
      paths,
      components: {
        securitySchemes,
        schemas: { ...schemasUsedBy(paths), Problem: problem },
        headers: HEADERS,
      },
      externalDocs: { description: 'Reference and guides', url: `${publicUrl}/docs` },
    };
  }

  /** Describes what the route's decorators say and imply: scope, query, headers, and every error that it can respond with. */
  #operation(route: Route, path: string): Json {
    const { handler, controller, method } = route;
    const { summary, description, response, parameters, body } = operationOf(handler);
    if (!response) throw new Error(`${method} ${path} does not say what it responds with`);
    const access = accessOf(handler, controller)!;
    const age = isServedByReplicas(handler) ? ['Age'] : [];
    const variants = describeVariants(handler);
    const examples = [handler.name, ...(variants ?? []).map(({ name }) => name)]
      .flatMap((name) => EXAMPLES[name] ?? [])
      .map((example) => this.#here(example));
    return {
      operationId: handler.name,
      tags: [tagOf(path)],
      summary,
      description,
      security: securityOf(access),
      'x-required-scope': access === 'public' ? undefined : access,
      'x-variants': variants,
      parameters: [...parameters, ...queryParameters(handler), ...(method === 'GET' ? [IF_NONE_MATCH] : [])],
      requestBody: body && withExample(body, examples),
      responses: {
        200: {
          description: summary,
          headers: headerRefs([...successHeaders(access, response, method), ...age]),
          content: { 'application/json': { schema: response, examples: examplesOf(examples, 200) } },
        },
        304:
          method === 'GET'
            ? { description: 'Not modified', headers: headerRefs(['ETag', 'X-Request-Id', ...age]) }
            : undefined,
        ...Object.fromEntries(
          Array.from(problemsByStatus(handler, access), ([status, codes]) => [
            status,
            problemResponse(status, codes, examplesOf(examples, status)),
          ]),
        ),
      },
    };
  }

  /** The example with addresses of this server. */
  #here(example: Example): Example {
    return JSON.parse(JSON.stringify(example).replaceAll(RECORDED_AT, this.config.publicUrl)) as Example;
  }
}

function apiKey(whose: string): Json {
  const description = `${whose}. For servers only: a key sent by a browser is refused.`;
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

/** The examples whose response has this status, as a member of a media type. */
function examplesOf(examples: readonly Example[], status: number): Json | undefined {
  const fitting = examples.filter(({ response }) => response.status === status);
  if (fitting.length === 0) return undefined;
  return Object.fromEntries(
    fitting.map(({ name, summary, response }) => [name, { summary, value: response.body }]),
  );
}

/** The body that a route takes, with the first of the examples that has one. */
function withExample(body: RequestBody, examples: readonly Example[]): Json {
  const value = examples.find(({ request }) => request.body !== undefined)?.request.body;
  const content = Object.entries(body.content).map(([type, { schema }]) => [
    type,
    { schema, examples: value && { changes: { value } } },
  ]);
  return { ...body, content: Object.fromEntries(content) as Json };
}

/** The classes that a query of the route can have. */
function queryClasses(handler: object): QueryClass[] {
  const accepted = queryOfHandler(handler);
  if (accepted === undefined) return [];
  if (typeof accepted === 'function') return [accepted];
  return [accepted.absent, ...Object.values(accepted.values)].map(({ query }) => query);
}

/** The query parameters of a route, those of all its variants together. */
export function queryParameters(handler: object): DescribedParameter[] {
  const classes = queryClasses(handler);
  if (classes.length < 2) return classes.flatMap(parametersOf);
  const all = new Map<string, ReturnType<typeof parametersOf>[number]>();
  for (const parameter of classes.flatMap(parametersOf)) {
    const known = all.get(parameter.name)?.schema;
    if (!known) all.set(parameter.name, parameter);
    // The same name means the same in each variant; only the accepted values differ.
    else if (known.enum) known.enum = [...new Set([...known.enum, ...parameter.schema.enum!])];
  }
  for (const parameter of all.values()) {
    parameter.required = false;
    // Generated clients send what is declared as a default, and a variant refuses what it does not know; `x-variants` has the defaults.
    delete parameter.schema.default;
  }
  return [...all.values()];
}

/** As it stands in `x-variants`. */
export type DescribedVariant = NonNullable<ReturnType<typeof describeVariants>>[number];

/** What each value of the deciding parameter returns, and its parameters; undefined where none decides. OpenAPI itself cannot express that. */
export function describeVariants(handler: object) {
  const accepted = queryOfHandler(handler);
  if (accepted === undefined || typeof accepted === 'function') return undefined;
  const { by, absent, values } = accepted;
  const all = [[undefined, absent] as const, ...Object.entries(values)];
  return all.map(([value, { query, name, summary, description, response }]) => ({
    name,
    value,
    by,
    summary,
    description,
    parameters: parametersOf(query).filter((parameter) => parameter.name !== by),
    schema: response,
  }));
}

/** The parameters that a class of queries declares. */
function parametersOf(query: QueryClass) {
  const defaults = new query() as Record<string, unknown>;
  return Array.from(propertiesOf(query), ([name, { schema, required }]) => {
    const { description, style, explode, ...rules } = schema as JsonSchema & { readonly enum?: string[] };
    return {
      name,
      in: 'query' as const,
      required: required ?? true,
      description,
      style,
      explode,
      schema: { ...rules, default: defaults[name] },
    };
  });
}

function problemsByStatus(handler: object, access: Access): Map<number, ProblemCode[]> {
  const codes: ProblemCode[] = [
    ...operationOf(handler).problems,
    'unknown_parameter',
    'invalid_parameter',
    'not_acceptable',
    'internal_error',
    'temporarily_unavailable',
  ];
  if (access !== 'public') {
    codes.push(
      'ambiguous_credentials',
      'missing_credentials',
      'invalid_credentials',
      'api_key_in_browser',
      'ip_not_allowed',
      'wrong_credential_kind',
      'rate_limited',
    );
    if (access !== null) codes.push('insufficient_scope');
  }
  const parameters = queryClasses(handler).flatMap(parametersOf);
  if (parameters.some(({ name }) => name === 'cursor')) codes.push('invalid_cursor');
  if (parameters.some(({ required }) => required)) codes.push('missing_parameter');
  const inOrder = ([...PROBLEMS.keys()] as ProblemCode[]).filter((code) => codes.includes(code));
  return Map.groupBy(inOrder, (code) => PROBLEMS.get(code)!.status);
}

function successHeaders(access: Access, response: JsonSchema, method: string): string[] {
  const names = ['X-Request-Id', ...(method === 'POST' ? [] : ['ETag']), 'Cache-Control', 'Vary'];
  if (access !== 'public')
    names.push('X-OAuth-Scopes', 'X-Accepted-OAuth-Scopes', 'RateLimit', 'RateLimit-Policy');
  if (JSON.stringify(response).includes('schemas/Pagination')) names.push('Link', 'X-Total-Count');
  return names;
}

function problemResponse(status: number, codes: readonly ProblemCode[], examples: Json | undefined): Json {
  const names = ['X-Request-Id', 'Cache-Control', 'Vary'];
  if (status === 401 || status === 403) names.push('WWW-Authenticate');
  if (status === 429 || status === 503) names.push('Retry-After');
  if (status === 412) names.push('ETag');
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: codes } } }],
  };
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS.get(code)!.title}`).join('; '),
    headers: headerRefs(names),
    content: { 'application/problem+json': { schema, examples } },
  };
}

function headerRefs(names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** This document licenses the server to nobody; an operator who publishes the API states the terms. */
const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' };

/** The groups of calls, with a sentence about each. */
const TAGS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Array.from(ABOUT, ([name, about]) => [capitalized(name), about])),
  Sync: 'What has changed in the member’s data, so that a copy of it can be kept up to date.',
  Credential: 'What the credential sent with the request is, and what it may do.',
  Platform: 'The calls for the platform’s own backend, with its own keys.',
  Documents: 'Descriptions of the API itself. No credential is needed.',
};

/** The first segment of the path; for paths that belong together, the name of their group. */
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
