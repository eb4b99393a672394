import { Injectable } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import type { OpenAPIObject } from '@nestjs/swagger';
import { accessOf } from '../../auth/auth.decorators.js';
import type { Access } from '../../auth/auth.decorators.js';
import { ALL_PLATFORM_SCOPES, ALL_SCOPES, isPlatformScope, SCOPES } from '../../auth/scopes.js';
import { JsonResponse } from '../../http/output/json-response.js';
import { PROBLEMS } from '../../http/output/problems.js';
import type { ProblemCode } from '../../http/output/problems.js';
import { API_PREFIX, isUnder, PLATFORM_PREFIX } from '../../http/pipeline/api-headers.js';
import { parameterNames } from '../../http/input/parameters.js';
import type { QueryClass } from '../../http/input/parameters.js';
import { queryOfHandler } from '../../http/input/query.js';
import { problemsOf, schemaOf, variantsOf } from '../../http/output/openapi.js';
import { RouteTable } from '../../http/route-table.js';
import type { Route } from '../../http/route-table.js';
import { apiNameOf, Config } from '../../config/config.js';
import { EXAMPLES, RECORDED_AT } from './examples.js';
import type { Example } from './examples.js';

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 documents of the running application: one of the routes for members' credentials, one of those for the platform's keys. */
@Injectable()
export class OpenApiDocument {
  #application: INestApplication | undefined;
  #members: JsonResponse | undefined;
  #platform: JsonResponse | undefined;

  constructor(
    private readonly config: Config,
    private readonly routeTable: RouteTable,
  ) {}

  describe(application: INestApplication): void {
    this.#application = application;
  }

  /** Of the routes for members’ credentials; made when it is first asked for. */
  answer(): JsonResponse {
    return (this.#members ??= JsonResponse.unchanging(this.#build(this.#ofMembers(), API_PREFIX)));
  }

  /** Of what the platform's own backend calls. */
  platformAnswer(): JsonResponse {
    return (this.#platform ??= JsonResponse.unchanging(this.#build(this.#ofPlatform(), PLATFORM_PREFIX)));
  }

  /** The document as its readers get it: plain JSON, a fresh copy. */
  read(): Json {
    return JSON.parse(String(this.answer().json)) as Json;
  }

  /** The same for the platform's document. */
  readPlatform(): Json {
    return JSON.parse(String(this.platformAnswer().json)) as Json;
  }

  #started(title: string): DocumentBuilder {
    const { publicUrl } = this.config;
    return new DocumentBuilder()
      .setTitle(title)
      .setVersion('1.0.0')
      .setExternalDoc('Reference and guides', `${publicUrl}/docs`)
      .setOpenAPIVersion('3.1.0')
      .addServer(publicUrl);
  }

  #ofPlatform(): Omit<OpenAPIObject, 'paths'> {
    return this.#started(`${apiNameOf(this.config)}, for the platform`)
      .setDescription(
        'The API for the platform’s own backend, which feeds the data of all members. Keys are issued by `pua keys create --platform`, ' +
          'belong to no member, and give no access to `/api/public`. Errors are `application/problem+json` (RFC 9457) with a `code`.',
      )
      .addApiKey(
        {
          type: 'apiKey',
          in: 'header',
          name: 'X-API-Key',
          description: 'Key of the platform’s backend. For servers only: a key sent by a browser is refused.',
        },
        'api_key',
      )
      .build();
  }

  #ofMembers(): Omit<OpenAPIObject, 'paths'> {
    const { publicUrl } = this.config;
    return this.#started(apiNameOf(this.config))
      .setDescription(
        'A member’s own profile, events, connections and achievements. Every response holds only data of the member ' +
          'whose access token or API key is sent. Times are UTC, `YYYY-MM-DD HH:MM:SS`. Errors are ' +
          '`application/problem+json` (RFC 9457) with a `code`.',
      )
      .addApiKey(
        {
          type: 'apiKey',
          in: 'header',
          name: 'X-API-Key',
          description: 'Key of a partner’s backend. For servers only: a key sent by a browser is refused.',
        },
        'api_key',
      )
      .addOAuth2(
        {
          type: 'oauth2',
          description: 'The member signs in: authorization code flow with PKCE (S256).',
          flows: {
            authorizationCode: {
              authorizationUrl: `${publicUrl}/oauth/authorize`,
              tokenUrl: `${publicUrl}/oauth/token`,
              refreshUrl: `${publicUrl}/oauth/token`,
              scopes: { ...SCOPES },
            },
          },
        },
        'oauth2',
      )
      .build();
  }

  #build(base: Omit<OpenAPIObject, 'paths'>, prefix: string): OpenAPIObject {
    const document = SwaggerModule.createDocument(this.#application!, base, {
      operationIdFactory: (_controller, method) => method,
    });
    document.info.license = LICENSE;
    document.info.contact = this.#contact();
    document.components!.schemas!.Problem = (prefix === API_PREFIX ? PROBLEM : PLATFORM_PROBLEM) as never;
    for (const schema of Object.values(document.components!.schemas!) as Json[]) closeObject(schema);
    document.components!.headers = HEADERS as never;
    for (const route of this.routeTable.routes) this.#complete(document, route);
    document.paths = Object.fromEntries(
      Object.entries(document.paths).filter(([path]) => isUnder(prefix, path)),
    );
    document.components!.schemas = usedSchemas(document) as never;
    const used = Object.values(document.paths).flatMap((item) =>
      Object.values(item as Record<string, { tags: string[] }>).flatMap(({ tags }) => tags),
    );
    document.tags = [...new Set([...Object.keys(TAGS), ...used])]
      .filter((name) => used.includes(name))
      .map((name) => ({ name, description: TAGS[name] ?? name }));
    return document;
  }

  /** Adds to a route's operation what its decorators imply: scope, query, headers, and every error that it can respond with. */
  #complete(document: OpenAPIObject, route: Route): void {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    const operation = (document.paths[path] as unknown as Record<string, Json> | undefined)?.[
      route.method.toLowerCase()
    ];
    if (!operation) return;
    const access = accessOf(route.handler, route.controller)!;
    operation.tags = [tagOf(path)];
    if (access === 'public') operation.security = [];
    else {
      operation.security = [
        { api_key: [] },
        ...(isPlatformScope(access ?? '') ? [] : [{ oauth2: access === null ? [] : [access] }]),
      ];
      operation['x-required-scope'] = access;
    }
    operation.parameters = [
      ...((operation.parameters as Json[] | undefined) ?? []).filter((parameter) => parameter.in === 'path'),
      ...queryParameters(route),
      ...(problemsOf(route.handler).includes('precondition_failed')
        ? [
            {
              name: 'If-Match',
              in: 'header',
              required: false,
              schema: { type: 'string' },
              description: 'ETag of GET /profile',
            },
          ]
        : route.method !== 'GET'
          ? []
          : [
              {
                name: 'If-None-Match',
                in: 'header',
                required: false,
                schema: { type: 'string' },
                description: 'ETag of an earlier response',
              },
            ]),
    ];
    if (problemsOf(route.handler).includes('idempotency_conflict'))
      (operation.parameters as Json[]).push({
        name: 'Idempotency-Key',
        in: 'header',
        required: false,
        schema: { type: 'string', minLength: 1, maxLength: 200, pattern: '^[!-~]+$' },
        description:
          'A key of your choice, in visible ASCII characters: the same key and body get the same response for 24 hours',
      });
    const variants = describeVariants(route);
    if (variants) operation['x-variants'] = variants;
    const responses = operation.responses as Record<string, Json>;
    const success = Object.keys(responses).find((status) => status.startsWith('2'))!;
    const isList = JSON.stringify(responses[success]).includes('schemas/Pagination');
    responses[success]!.description ||= operation.summary;
    responses[success]!.headers = headerRefs(successHeaders(access, isList, route.method));
    if (route.method === 'GET')
      responses['304'] = { description: 'Not modified', headers: headerRefs(['ETag', 'X-Request-Id']) };
    const examples = [operation.operationId as string, ...(variants ?? []).map(({ name }) => name as string)]
      .flatMap((name) => EXAMPLES[name] ?? [])
      .map((example) => this.#here(example));
    addExamples(responses[success]!, examples, Number(success));
    for (const [status, codes] of problemsByStatus(route, access)) {
      responses[status] = {
        description: codes.map((code) => `\`${code}\`: ${PROBLEMS.get(code)!.title}`).join('; '),
        headers: headerRefs(problemHeaders(status)),
        content: {
          'application/problem+json': {
            schema: {
              allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: codes } } }],
            },
          },
        },
      };
      addExamples(responses[status]!, examples, Number(status));
    }
    const body = examples.find(({ request }) => request.body !== undefined)?.request.body;
    const accepted = operation.requestBody as { content: Record<string, Json> } | undefined;
    if (accepted && body !== undefined)
      for (const type of Object.values(accepted.content)) type.examples = { changes: { value: body } };
  }

  #contact(): { name: string; url?: string; email?: string } {
    const { supportUrl, publicUrl } = this.config;
    if (supportUrl?.startsWith('mailto:'))
      return { name: 'Support', email: supportUrl.slice('mailto:'.length) };
    return { name: 'Support', url: supportUrl ?? `${publicUrl}/` };
  }

  /** The example with addresses of this server. */
  #here(example: Example): Example {
    return JSON.parse(JSON.stringify(example).replaceAll(RECORDED_AT, this.config.publicUrl)) as Example;
  }
}

/** Adds the examples whose response has this status. */
function addExamples(response: Json, examples: readonly Example[], status: number): void {
  const fitting = examples.filter((example) => example.response.status === status);
  const content = response.content as Record<string, Json> | undefined;
  if (!content || fitting.length === 0) return;
  for (const type of Object.values(content))
    type.examples = Object.fromEntries(
      fitting.map(({ name, summary, response: { body } }) => [name, { summary, value: body }]),
    );
}

/** The classes that a query of the route can have. */
function queryClasses(route: Route): QueryClass[] {
  const accepted = queryOfHandler(route.handler);
  if (accepted === undefined) return [];
  return typeof accepted === 'function' ? [accepted] : [accepted.absent, ...Object.values(accepted.values)];
}

function queryParameters(route: Route): Json[] {
  const accepted = queryOfHandler(route.handler);
  if (accepted === undefined) return [];
  if (typeof accepted === 'function') return parametersOf(accepted);
  const all = new Map<string, Json>();
  for (const variant of queryClasses(route)) {
    for (const parameter of parametersOf(variant)) {
      const known = all.get(parameter.name as string);
      // The same name means the same in each variant; only the accepted values differ.
      if (known) known.schema = mergeSchemas(known.schema as Json, parameter.schema as Json);
      else all.set(parameter.name as string, { ...parameter, required: false });
    }
  }
  // Generated clients send what is declared as a default, and a variant refuses what it does not know; `x-variants` has the defaults.
  for (const { schema } of all.values()) delete (schema as Json).default;
  const by = all.get(accepted.by) ?? { name: accepted.by, in: 'query', required: false };
  by.schema = { type: 'string', enum: Object.keys(accepted.values) };
  all.set(accepted.by, by);
  return [...all.values()];
}

/** What each value of the deciding parameter returns, and its parameters. OpenAPI itself cannot express that. */
function describeVariants(route: Route): Json[] | undefined {
  const accepted = queryOfHandler(route.handler);
  const described = variantsOf(route.handler);
  if (accepted === undefined || typeof accepted === 'function' || !described) return undefined;
  return Object.entries(described).map(([value, variant]) => ({
    name: variant.name,
    ...(value === '' ? {} : { value }),
    by: accepted.by,
    summary: variant.summary,
    description: variant.description,
    parameters: parametersOf(value === '' ? accepted.absent : accepted.values[value]!).filter(
      ({ name }) => name !== accepted.by,
    ),
    schema: schemaOf(variant),
  }));
}

function mergeSchemas(one: Json, other: Json): Json {
  const merged: Json = { ...one };
  if (Array.isArray(one.enum) && Array.isArray(other.enum)) {
    merged.enum = [...new Set<unknown>([...(one.enum as unknown[]), ...(other.enum as unknown[])])];
  }
  return merged;
}

function parametersOf(query: QueryClass): Json[] {
  return parameterNames(query).map((name) => {
    const { required, description, style, explode, ...schema } = Reflect.getMetadata(
      'swagger/apiModelProperties',
      query.prototype as object,
      name,
    ) as Json;
    delete schema.isArray;
    const fallback = (new query() as Record<string, unknown>)[name];
    return {
      name,
      in: 'query',
      required: required === true,
      description,
      ...(style ? { style, explode } : {}),
      schema: { ...schema, ...(fallback === undefined ? {} : { default: fallback }) },
    };
  });
}

function problemsByStatus(route: Route, access: Access): Map<string, ProblemCode[]> {
  const codes: ProblemCode[] = [
    ...problemsOf(route.handler),
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
  const parameters = queryClasses(route).flatMap(parametersOf);
  if (parameters.some(({ name }) => name === 'cursor')) codes.push('invalid_cursor');
  if (parameters.some(({ required }) => required)) codes.push('missing_parameter');
  const byStatus = new Map<string, ProblemCode[]>();
  for (const code of PROBLEMS.keys() as Iterable<ProblemCode>) {
    if (!codes.includes(code)) continue;
    const status = String(PROBLEMS.get(code)!.status);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

function successHeaders(access: Access, isList: boolean, method: string): string[] {
  const names = ['X-Request-Id', ...(method === 'POST' ? [] : ['ETag']), 'Cache-Control', 'Vary'];
  if (access !== 'public')
    names.push('X-OAuth-Scopes', 'X-Accepted-OAuth-Scopes', 'RateLimit', 'RateLimit-Policy');
  if (isList) names.push('Link', 'X-Total-Count');
  return names;
}

function problemHeaders(status: string): string[] {
  const names = ['X-Request-Id', 'Cache-Control', 'Vary'];
  if (status === '401' || status === '403') names.push('WWW-Authenticate');
  if (status === '429' || status === '503') names.push('Retry-After');
  if (status === '412') names.push('ETag');
  return names;
}

function headerRefs(names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** This document licenses the server to nobody; an operator who publishes the API states the terms. */
const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' };

/** The groups of calls, with a sentence about each. */
const TAGS: Readonly<Record<string, string>> = {
  Profile: 'Who the member is, and what they can change about that.',
  Events: 'The events that the member organises, attends or is invited to.',
  Connections: 'The people whom the member is connected with.',
  Achievements: 'What the member has earned, and their progress towards the rest.',
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
  return groups[segment] ?? segment.replace(/^./, (letter) => letter.toUpperCase());
}

const header = (description: string, schema: Json = { type: 'string' }) => ({ description, schema });

const HEADERS = {
  'X-Request-Id': header(
    'The one sent with the request, if it was 1–64 characters of `[A-Za-z0-9._-]`; otherwise generated',
    {
      type: 'string',
      pattern: '^[A-Za-z0-9._-]{1,64}$',
    },
  ),
  ETag: header('Strong validator'),
  'Cache-Control': header('`private, no-cache`; on errors `no-store`'),
  Vary: header('`Authorization, X-API-Key, Origin`'),
  'X-OAuth-Scopes': header('Scopes of the credential, separated by ", "'),
  'X-Accepted-OAuth-Scopes': header('The scope that the endpoint needs'),
  'RateLimit-Policy': header(
    '`"read";q=300;w=60`: requests per window, and its length in seconds (draft-ietf-httpapi-ratelimit-headers)',
  ),
  RateLimit: header('`"read";r=299;t=42`: remaining requests, and seconds until the next window'),
  Link: header('Links to the first, previous and next page (RFC 8288)'),
  'X-Total-Count': header('`pagination.total`', { type: 'integer', minimum: 0 }),
  'WWW-Authenticate': header('RFC 6750 §3, RFC 9728 §5.1'),
  'Retry-After': header('Seconds to wait', { type: 'integer', minimum: 1 }),
};

const PROBLEM_PARAMETER: Json = {
  type: 'object',
  required: ['parameter', 'code', 'detail'],
  additionalProperties: false,
  properties: {
    parameter: { type: 'string' },
    code: { type: 'string' },
    detail: { type: 'string' },
    allowed: { type: 'array', items: { type: 'string' } },
  },
};

const PROBLEM: Json = {
  type: 'object',
  description: 'RFC 9457',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: [...PROBLEMS.keys()] },
    request_id: { type: 'string' },
    errors: {
      type: 'array',
      minItems: 1,
      maxItems: 32,
      items: {
        oneOf: [
          {
            type: 'object',
            required: ['pointer', 'field', 'code', 'detail'],
            additionalProperties: false,
            properties: {
              pointer: { type: 'string' },
              field: { type: ['string', 'null'] },
              code: { type: 'string' },
              detail: { type: 'string' },
              max: { type: 'integer' },
              actual: { type: 'integer' },
            },
          },
          PROBLEM_PARAMETER,
        ],
      },
    },
    required_scope: { type: 'string', enum: ALL_SCOPES },
    granted_scopes: { type: 'array', items: { type: 'string' } },
    retry_after: { type: 'integer', minimum: 1 },
  },
};

/** The same for the platform's calls, whose errors can concern lines of a feed. */
const PLATFORM_PROBLEM: Json = {
  ...PROBLEM,
  properties: {
    ...(PROBLEM.properties as Json),
    errors: {
      type: 'array',
      minItems: 1,
      maxItems: 100,
      items: {
        oneOf: [
          {
            type: 'object',
            required: ['line', 'pointer', 'code', 'detail'],
            additionalProperties: false,
            properties: {
              line: { type: 'integer', minimum: 1 },
              pointer: { type: 'string' },
              code: { type: 'string' },
              detail: { type: 'string' },
            },
          },
          PROBLEM_PARAMETER,
        ],
      },
    },
    required_scope: { type: 'string', enum: ALL_PLATFORM_SCOPES },
  },
};

/** Keeps only the schemas that the calls refer to, directly or through others. */
function usedSchemas(document: OpenAPIObject): Record<string, unknown> {
  const schemas = document.components!.schemas! as Record<string, unknown>;
  const used = new Set<string>();
  const look = (value: unknown) => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name!)) continue;
      used.add(name!);
      look(schemas[name!]);
    }
  };
  look(document.paths);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
}

/** Closes the schema: responses are checked against it, so that an undocumented key is an error. */
function closeObject(schema: Json): void {
  if (schema.type === 'object' && schema.properties) schema.additionalProperties = false;
}
