import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { TestApi } from '../support/api.js';
import { thorough } from '../support/database.js';

interface Parameter {
  name: string;
  in: string;
  description?: string;
  schema: { type?: string };
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
  info: { license: object; contact: object };
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

  it('names each call as a method of a client would be named, once', () => {
    const names = operations().flatMap(({ operation }) => [
      ...new Set([operation.operationId, ...(operation['x-variants'] ?? []).map(({ name }) => name)]),
    ]);
    expect(names.toSorted()).toEqual([
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
    ]);
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
    expect(ids.map(({ schema }) => schema.type)).toEqual(['integer']);
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
