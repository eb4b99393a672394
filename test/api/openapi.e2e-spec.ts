import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { VERSION } from '../../src/config/version.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';

interface Parameter {
  name: string;
  in: string;
  description?: string;
  schema: {
    type?: string;
    minimum?: number;
    maximum?: number;
    minLength?: number;
    examples?: unknown[];
    default?: unknown;
  };
  example?: unknown;
}

interface Media {
  schema: object;
  examples?: Record<string, { summary?: string; value: unknown }>;
}

interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  parameters: Parameter[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { description: string; content?: Record<string, Media> }>;
  'x-variants'?: { name: string; value?: string; parameters: Parameter[]; schema: object }[];
}

interface Document {
  info: { version: string; license: object; contact: object };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
}

describe('GET /api/public/openapi.json', () => {
  let api: TestApi;
  let document: Document;
  beforeAll(async () => {
    api = await TestApi.start();
    document = (await api.send('GET', '/api/public/openapi.json')).body as Document;
  });
  afterAll(() => api.close());

  const operations = () =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );

  it('has the version of the program', () => {
    expect(document.info.version).toBe(VERSION);
  });

  it('names each call as a method of a client would be named, once', () => {
    const names = operations().flatMap(({ operation }) => [
      ...new Set([operation.operationId, ...(operation['x-variants'] ?? []).map(({ name }) => name)]),
    ]);
    expect(names).toEqual([...new Set(names)]);
    expect(names.filter((name) => !/^(get|list|update)[A-Z][A-Za-z]+$/.test(name))).toEqual([]);
    // Programs have methods of these names.
    const known = [
      'getAchievement',
      'getAchievementStatistics',
      'getCredential',
      'getEvent',
      'getMe',
      'getOpenApi',
      'getProblem',
      'getProfile',
      'listAchievements',
      'listAllAchievements',
      'listChanges',
      'listConnections',
      'listEvents',
      'listPinnedAchievements',
      'listProblems',
      'updateProfile',
    ];
    expect(names).toEqual(expect.arrayContaining(known));
  });

  it('describes every call, parameter and group, in whole sentences where they are long', () => {
    for (const { path, method, operation } of operations()) {
      expect([method, path, operation.description]).toEqual([
        method,
        path,
        expect.stringMatching(/.{20,}\.$/s),
      ]);
      for (const { name, description } of operation.parameters)
        expect([path, name, description]).toEqual([path, name, expect.stringMatching(/\w{2,}/)]);
      expect(document.tags.map(({ name }) => name)).toContain(operation.tags[0]);
    }
    for (const { name, description } of document.tags)
      expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z].+\.$/)]);
  });

  it('says of each key of a response what it is, but for those whose name says it', () => {
    const { schemas } = (
      document as unknown as { components: { schemas: Record<string, { properties: object }> } }
    ).components;
    const undescribed = Object.entries(schemas)
      .filter(([name]) => name !== 'Problem')
      .flatMap(([, { properties }]) =>
        Object.entries(properties as Record<string, { description?: string }>).flatMap(
          ([key, { description }]) => (description === undefined ? [key] : []),
        ),
      );
    const plain =
      'bio city created_at data description display_name earned first_name id last_name latitude longitude message method name path profile profile_picture status title total type';
    expect([...new Set(undescribed)].toSorted()).toEqual(plain.split(' '));
  });

  it('says that an id in a path is an integer', () => {
    const ids = operations()
      .flatMap(({ operation }) => operation.parameters)
      .filter(({ name, in: place }) => place === 'path' && name === 'id');
    expect(ids.map(({ schema }) => [schema.type, schema.minimum, schema.maximum])).toEqual([
      ['integer', 1, 9_000_000_000_000_000],
    ]);
  });

  it('has a length for cursors, and only examples and defaults that their schema accepts', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
    const platform = (await api.send('GET', '/api/platform/openapi.json')).body as Document;
    let checked = 0;
    for (const [id, { paths, ...rest }] of Object.entries({ public: document, platform })) {
      ajv.addSchema({ paths, ...rest } as object, id);
      for (const [path, methods] of Object.entries(paths)) {
        for (const { parameters, requestBody } of Object.values(methods)) {
          for (const { name, schema, example } of parameters) {
            if (['cursor', 'after'].includes(name))
              expect([path, name, schema.minLength]).toEqual([path, name, 1]);
            const shown = [...(schema.examples ?? []), example, schema.default].filter(
              (value) => value !== undefined,
            );
            for (const value of shown) {
              expect([path, name, value, ajv.validate(schema, value)]).toEqual([path, name, value, true]);
              checked++;
            }
          }
          for (const { schema, examples } of Object.values(requestBody?.content ?? {})) {
            const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/', `"${id}#/`)) as object;
            for (const { value } of Object.values(examples ?? {})) {
              expect([path, value, ajv.validate(whole, value), ajv.errors]).toEqual([
                path,
                value,
                true,
                null,
              ]);
              checked++;
            }
          }
        }
      }
    }
    expect(checked).toBeGreaterThan(20);
  });

  it('has each form of a line of a feed', async () => {
    const { body } = await api.send('GET', '/api/platform/openapi.json');
    const { paths } = body as Document;
    const { schema } = paths['/api/platform/records']!.post!.requestBody!.content['application/x-ndjson']!;
    const accepts = new Ajv2020({ strict: false, validateFormats: false }).compile({
      ...schema,
      components: body.components,
    });
    const record = { event_id: 5, user_id: 7, role: 'attendee', rsvp_status: 'going' };
    const pair = { event_id: 5, user_id: 7 };
    const lines: [line: object, isOne: boolean][] = [
      [{ type: 'participants', record }, true],
      [{ type: 'participants', op: 'put', record, version: 3 }, true],
      [{ type: 'participants', op: 'delete', record: pair }, true],
      [{ type: 'participants', op: 'delete', record }, true],
      [{ type: 'participants', record: pair }, false],
      [{ type: 'participants', record: { ...record, checked_in_at: 'soon' } }, false],
      [{ type: 'participants', record: { ...record, user_id: 9_000_000_000_000_001 } }, false],
      [{ type: 'participants', record: { ...record, hobby: 'chess' } }, false],
      [{ type: 'events', record }, false],
      [{ type: 'badges', record: {} }, false],
      [{ type: 'participants' }, false],
      [{ record }, false],
    ];
    expect(lines.map(([line]) => [line, accepts(line)])).toEqual(lines);
  });

  it('has a licence, and whom to ask', () => {
    expect(document.info).toMatchObject({
      license: { name: expect.any(String), identifier: expect.any(String) },
      contact: { name: expect.any(String), url: `${api.config.publicUrl}/` },
    });
  });

  it('says of each action of achievements what it takes and what it answers', () => {
    const { 'x-variants': variants, responses } = document.paths['/api/public/achievements']!.get!;
    expect(variants!.map(({ value, name }) => [value, name])).toEqual([
      [undefined, 'listAchievements'],
      ['all', 'listAllAchievements'],
      ['stats', 'getAchievementStatistics'],
      ['detail', 'getAchievement'],
      ['pinned', 'listPinnedAchievements'],
    ]);
    const whole = (responses['200']!.content!['application/json']!.schema as { oneOf: object[] }).oneOf;
    for (const { schema } of variants!) expect(whole).toContainEqual(schema);
    const names = (name: string) =>
      variants!.find((variant) => variant.name === name)!.parameters.map((parameter) => parameter.name);
    expect(names('getAchievement')).toEqual(['id']);
    expect(names('listPinnedAchievements')).toEqual([]);
    expect(names('listAllAchievements')).toEqual(['limit', 'cursor', 'sort', 'earned', 'category', 'rarity']);
  });

  it('declares no default that is refused where a client sends it', async () => {
    const user = await api.platform.user();
    const key = await api.key(user);
    const id = String(await api.platform.achievement());
    let sent = 0;
    for (const { path, method, operation } of operations()) {
      const defaults = operation.parameters.flatMap(({ name, schema }): [string, string][] =>
        schema.default === undefined ? [] : [[name, String(schema.default as string | number)]],
      );
      if (method !== 'get' || path.includes('{') || !path.startsWith('/api/public')) continue;
      for (const { value } of operation['x-variants'] ?? [{ value: undefined }]) {
        const of = value === undefined ? {} : { action: value, ...(value === 'detail' ? { id } : {}) };
        const query = new URLSearchParams({ ...of, ...Object.fromEntries(defaults) });
        const { status, body } = await api.get(`${path.slice('/api/public'.length)}?${query}`, key);
        expect([path, String(query), status, body.errors]).toEqual([path, String(query), 200, undefined]);
        sent += defaults.length;
      }
    }
    expect(sent).toBeGreaterThan(3);
  });

  thorough.it(
    'has a whole response of the demo for each call, and those of its errors that can be shown, all true to their schema',
    () => {
      const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
      ajv.addSchema(document as object, 'openapi');
      let checked = 0;
      for (const { path, method, operation } of operations()) {
        for (const [status, { content = {} }] of Object.entries(operation.responses)) {
          for (const [type, { examples = {} }] of Object.entries(content)) {
            const pointer = ['paths', path, method, 'responses', status, 'content', type, 'schema']
              .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
              .join('/');
            const validate = ajv.getSchema(`openapi#/${pointer}`)!;
            for (const [name, { value, summary }] of Object.entries(examples)) {
              expect([path, name, validate(value), validate.errors]).toEqual([path, name, true, null]);
              expect(summary).toMatch(/^[A-Z]/);
              checked++;
            }
            const isDocument = /openapi/.test(path);
            if (status === '200' && !isDocument)
              expect([path, method, Object.keys(examples).length]).not.toEqual([path, method, 0]);
          }
        }
      }
      expect(checked).toBeGreaterThan(20);
      const achievements = document.paths['/api/public/achievements']!.get!.responses['200']!.content!;
      expect(Object.keys(achievements['application/json']!.examples!)).toEqual([
        'earned',
        'all',
        'stats',
        'detail',
        'pinned',
      ]);
    },
  );

  it('shows addresses of this server in its examples, and of no other', () => {
    expect(JSON.stringify(document)).toContain(`${api.config.publicUrl}/api/public/problems/event_not_found`);
    if (api.config.publicUrl !== 'http://localhost:3000')
      expect(JSON.stringify(document)).not.toContain('http://localhost:3000');
  });
});
