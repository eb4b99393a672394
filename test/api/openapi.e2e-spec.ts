import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ProfileController } from '../../src/resources/profile/profile.controller.js';
import { DeprecatedRoute, Documents } from '../../src/http/output/openapi.js';
import { VERSION } from '../../src/config/version.js';
import { TestApi } from '../support/api.js';
import type { ApiDocument, Described } from '../support/openapi.js';

/** The fields of the examples that tests compare. */
interface Shown extends Record<string, unknown> {
  id?: number;
  data?: (Record<string, unknown> & { id?: number; location?: object | null; code?: string })[];
  pagination?: { count: number; limit: number; total: number; has_more: boolean; next_cursor: string | null };
  by_category?: Record<string, number>[];
  by_rarity?: Record<string, number>[];
}

const sum = (parts: Record<string, number>[], key: string) =>
  parts.reduce((so_far, part) => so_far + part[key]!, 0);

describe('GET /api/public/openapi.json', () => {
  let api: TestApi;
  let document: ApiDocument;
  beforeAll(async () => {
    api = await TestApi.start();
    document = (await api.send('GET', '/api/public/openapi.json')).body as ApiDocument;
  });
  afterAll(() => api.close());

  const operations = () =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );

  it('names each operation uniquely, in a form that is valid as a client’s method name', () => {
    const names = operations().map(({ operation }) => operation.operationId);
    expect(names).toEqual([...new Set(names)]);
    expect(names.filter((name) => !/^(get|list|update)[A-Z][A-Za-z]+$/.test(name))).toEqual([]);
    // The published clients have methods with these names.
    const known =
      'getAchievement getAchievementStatistics getCredential getEvent getMe getOpenApi getProblem getProfile listAchievements listAllAchievements listChanges listConnections listEarnedAchievements listEvents listPinnedAchievements listProblems updateProfile';
    expect(names).toEqual(expect.arrayContaining(known.split(' ')));
  });

  it('describes every operation and tag in a sentence, and every parameter', () => {
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

  it('describes all properties of its schemas except Problem and 24 names such as id', () => {
    const undescribed = Object.entries(document.components.schemas)
      .filter(([name]) => name !== 'Problem')
      .flatMap(([, { properties = {} }]) =>
        Object.entries(properties).flatMap(([key, { description }]) =>
          description === undefined ? [key] : [],
        ),
      );
    const plain =
      'bio city created_at data description detail display_name earned first_name id last_name latitude longitude message method name pagination path profile profile_picture status title total type';
    expect([...new Set(undescribed)].toSorted()).toEqual(plain.split(' '));
  });

  it('declares ids in paths as integers', () => {
    const ids = operations()
      .flatMap(({ operation }) => operation.parameters)
      .filter(({ name, in: place }) => place === 'path' && name === 'id');
    expect(ids.map(({ schema }) => [schema.type, schema.minimum, schema.maximum])).toEqual([
      ['integer', 1, 9_000_000_000_000_000],
      ['integer', 1, 9_000_000_000_000_000],
    ]);
  });

  it('has parameters and bodies whose examples and defaults match their schemas, and cursors of at least one character', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
    const platform = (await api.send('GET', '/api/platform/openapi.json')).body as ApiDocument;
    let checked = 0;
    for (const [id, { paths, ...rest }] of Object.entries({ public: document, platform })) {
      ajv.addSchema({ paths, ...rest } as object, id);
      for (const [path, methods] of Object.entries(paths)) {
        for (const { parameters, requestBody } of Object.values(methods)) {
          for (const { name, schema, example } of parameters) {
            if (['cursor', 'after'].includes(name)) expect([path, schema.minLength]).toEqual([path, 1]);
            const shown = [...(schema.examples ?? []), example, schema.default].filter(
              (value) => value !== undefined,
            );
            for (const value of shown) {
              const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/', `"${id}#/`)) as object;
              expect([path, name, value, ajv.validate(whole, value)]).toEqual([path, name, value, true]);
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

  it('has a counterpart for the platform, whose schema accepts four valid feed lines and rejects eight invalid ones', async () => {
    const { body } = await api.send('GET', '/api/platform/openapi.json');
    const { paths } = body as ApiDocument;
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

  it('states the program’s version, a license and a contact', () => {
    expect(document.info).toMatchObject({
      version: VERSION,
      license: { name: expect.any(String), identifier: expect.any(String) },
      contact: { name: expect.any(String), url: `${api.config.publicUrl}/` },
    });
  });

  it('has a path for each view of achievements, with the view’s own parameters', () => {
    const views = operations().flatMap(({ path, operation }) =>
      path.startsWith('/api/public/achievements') ? [{ path, ...operation }] : [],
    );
    expect(views.map((view) => [view.operationId, view.path, view['x-same-as']])).toEqual([
      ['listAchievements', '/api/public/achievements', undefined],
      ['listEarnedAchievements', '/api/public/achievements/earned', '/api/public/achievements'],
      ['listAllAchievements', '/api/public/achievements/all', '/api/public/achievements?action=all'],
      ['getAchievementStatistics', '/api/public/achievements/stats', '/api/public/achievements?action=stats'],
      ['listPinnedAchievements', '/api/public/achievements/pinned', '/api/public/achievements?action=pinned'],
      ['getAchievement', '/api/public/achievements/{id}', '/api/public/achievements?action=detail&id={id}'],
    ]);
    const taken = Object.fromEntries(
      views.map(({ operationId, parameters }) => [
        operationId,
        parameters.filter((one) => one.in !== 'header').map(({ name, schema }) => [name, schema.default]),
      ]),
    );
    expect(taken.listAllAchievements).toEqual([
      ['limit', 20],
      ['cursor', undefined],
      ['sort', 'position'],
      ['earned', undefined],
      ['category', undefined],
      ['rarity', undefined],
      ['updated_since', undefined],
    ]);
    // One view's default is invalid for another view.
    expect(taken.listAchievements).toEqual(
      'action limit cursor sort category rarity earned_after earned_before q updated_since earned id'
        .split(' ')
        .map((name) => [name, undefined]),
    );
    expect(views[0]!.parameters.filter(({ required }) => required)).toEqual([]);
    expect(taken.listEarnedAchievements).toContainEqual(['sort', '-earned_at']);
    expect([taken.getAchievement, taken.getAchievementStatistics, taken.listPinnedAchievements]).toEqual([
      [['id', undefined]],
      [],
      [],
    ]);
  });

  it('has components for error responses and pages, to which the operations refer', () => {
    for (const { operation } of operations())
      for (const [status, response] of Object.entries(operation.responses))
        if (status !== '200')
          expect(response).toEqual({ $ref: expect.stringMatching(/^#\/components\/responses\/\w+$/) });
    expect(Object.keys(document.components.responses).join(' ')).toBe(
      'NotModified BadRequest Unauthorized Forbidden NotFound EventNotFound AchievementNotFound NotAcceptable CursorExpired PreconditionFailed PayloadTooLarge UnsupportedMediaType ValidationFailed RateLimited InternalError TemporarilyUnavailable',
    );
    const pages = operations().flatMap(({ operation }) => {
      const { schema } = (operation.responses['200'] as Described).content!['application/json'] as {
        schema: { $ref?: string };
      };
      return schema.$ref?.endsWith('Page') ? [schema.$ref.split('/').at(-1)!] : [];
    });
    expect(new Set(pages)).toEqual(
      new Set(Object.keys(document.components.schemas).filter((name) => name.endsWith('Page'))),
    );
    expect(pages.filter((name) => name === 'AchievementPage')).toHaveLength(3);
  });

  it('marks a deprecated route, whose responses have Deprecation and Sunset headers that pages can read', async () => {
    const at = Object.getOwnPropertyDescriptor(ProfileController.prototype, 'getMe')!;
    DeprecatedRoute('2026-12-01', '2027-12-01')(ProfileController.prototype, 'getMe', at);
    const ending = await TestApi.start({}, api);
    try {
      const { paths } = (await ending.send('GET', '/api/public/openapi.json')).body;
      expect(paths['/api/public/me'].get).toMatchObject({ deprecated: true, 'x-sunset': '2027-12-01' });
      expect(paths['/api/public/me'].get.responses['200']['x-response-headers']).toContain('Sunset');
      const key = await ending.key(await api.platform.user());
      const { headers } = await ending.get('/me', key);
      expect(headers).toMatchObject({ deprecation: '@1796083200', sunset: 'Wed, 01 Dec 2027 00:00:00 GMT' });
      expect(headers['access-control-expose-headers']).toMatch(/Deprecation, Sunset/);
      expect((await ending.get('/me?page=1', key)).headers).toHaveProperty('deprecation');
      expect((await ending.get('/profile', key)).headers).not.toHaveProperty('deprecation');
    } finally {
      Documents({ deprecation: undefined })(ProfileController.prototype, 'getMe', at);
      await ending.close();
    }
  });

  it('states the format of every integer, int32 or int64', () => {
    const integers = [
      ...JSON.stringify(document).matchAll(
        /"type":(?:"integer"|\["integer","null"\])(?:,"format":"(\w+)")?/g,
      ),
    ];
    expect(new Set(integers.map(([, format]) => format))).toEqual(new Set(['int32', 'int64']));
    const { Event: event, Pagination: pagination } = document.components.schemas;
    expect(event!.properties).toMatchObject({
      id: { format: 'int64' },
      attendees_count: { format: 'int64' },
    });
    expect(pagination!.properties).toMatchObject({ total: { format: 'int64' }, limit: { format: 'int32' } });
  });

  it('links a list to its next page and first item, and an error to its explanation', async () => {
    const { id: user, key } = await api.member();
    for (let count = 0; count < 3; count++) {
      await api.platform.participant(await api.platform.event({ organizer_id: user }), user, {
        role: 'organizer',
        rsvp_status: null,
      });
      await api.platform.progress(user, await api.platform.achievement(), {
        earned_at: '2024-01-01T10:00:00Z',
      });
      await api.platform.connection(user, await api.platform.user());
    }
    const followed: string[] = [];
    for (const { path, operation } of operations()) {
      const { links = {} } = operation.responses['200'] as Described;
      for (const [name, { operationId, parameters }] of Object.entries(links)) {
        const query = new URLSearchParams({ limit: '1' });
        const first = await api.get(
          `${path.slice('/api/public'.length)}?${operation.parameters.some((one) => one.name === 'limit') ? query : ''}`,
          key,
        );
        const target = operations().find((each) => each.operation.operationId === operationId)!;
        const values = Object.entries(parameters).flatMap(([parameter, expression]) => {
          const [, place, at] = /^\$(response\.body#\/|request\.query\.)(.+)$/.exec(expression)!;
          const value =
            place === 'request.query.'
              ? query.get(at!)
              : at!
                  .split('/')
                  .reduce<unknown>(
                    (inside, part) => (inside as Record<string, unknown> | undefined)?.[part],
                    first.body,
                  );
          return value === null || value === undefined ? [] : [[parameter, String(value as string)]];
        });
        if (values.length === 0) continue;
        const filled = Object.fromEntries(values) as Record<string, string>;
        const at = target.path.replace(/\{(\w+)\}/g, (_, parameter: string) => filled[parameter]!);
        const next = await api.get(
          `${at.slice('/api/public'.length)}?${at === target.path ? new URLSearchParams(filled) : ''}`,
          key,
        );
        expect([operation.operationId, name, next.status]).toEqual([operation.operationId, name, 200]);
        followed.push(`${operation.operationId}: ${name}, ${operationId}`);
      }
    }
    const known = [
      'listEvents: next, listEvents',
      'listEvents: item, getEvent',
      'listConnections: next, listConnections',
      'listEarnedAchievements: next, listEarnedAchievements',
      'listEarnedAchievements: item, getAchievement',
      'listAllAchievements: next, listAllAchievements',
      'listAllAchievements: item, getAchievement',
      'listChanges: next, listChanges',
    ];
    expect(followed).toEqual(expect.arrayContaining(known));
    const { links } = document.components.responses.EventNotFound!;
    expect(links).toEqual({
      meaning: expect.objectContaining({
        operationId: 'getProblem',
        parameters: { code: '$response.body#/code' },
      }),
    });
  });

  it('declares no default that the server rejects when a client sends it', async () => {
    const key = await api.key(await api.platform.user());
    let sent = 0;
    for (const { path, method, operation } of operations()) {
      const defaults = operation.parameters.flatMap(({ name, schema }): [string, string][] =>
        schema.default === undefined ? [] : [[name, String(schema.default as string | number)]],
      );
      if (method !== 'get' || path.includes('{') || !path.startsWith('/api/public')) continue;
      const query = new URLSearchParams(defaults);
      const { status, body } = await api.get(`${path.slice('/api/public'.length)}?${query}`, key);
      expect([path, String(query), status, body.errors]).toEqual([path, String(query), 200, undefined]);
      sent += defaults.length;
    }
    expect(sent).toBeGreaterThan(3);
  });

  it('has an example response for each operation except openapi.json, and only examples that match their schemas', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
    ajv.addSchema(document as object, 'openapi');
    let checked = 0;
    const check = (place: string[], { content = {} }: Described) => {
      for (const [type, { examples = {} }] of Object.entries(content)) {
        const pointer = [...place, 'content', type, 'schema']
          .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
          .join('/');
        const validate = ajv.getSchema(`openapi#/${pointer}`)!;
        for (const [name, { value, summary }] of Object.entries(examples)) {
          expect([place, name, validate(value), validate.errors]).toEqual([place, name, true, null]);
          expect(summary).toMatch(/^[A-Z]/);
          checked++;
        }
      }
    };
    for (const { path, method, operation } of operations()) {
      const success = operation.responses['200'] as Described;
      check(['paths', path, method, 'responses', '200'], success);
      const { examples } = success.content!['application/json']!;
      expect([path, examples === undefined]).toEqual([path, /openapi/.test(path)]);
    }
    for (const [name, response] of Object.entries(document.components.responses))
      check(['components', 'responses', name], response);
    expect(checked).toBeGreaterThan(20);
  });

  it('has consistent examples: one member, one event, one achievement, matching counts, and cursors of the last item', () => {
    const shown = Object.fromEntries(
      operations().map(({ operation }) => {
        const { examples = {} } = (operation.responses['200'] as Described).content!['application/json']!;
        return [operation.operationId, Object.values(examples)[0]?.value as Shown];
      }),
    );
    const item = (name: string, of: string) => shown[name]!.data!.find(({ id }) => id === shown[of]!.id);
    // A list item equals its detail response.
    for (const [list, one] of [
      ['listEvents', 'getEvent'],
      ['listEarnedAchievements', 'getAchievement'],
      ['listAllAchievements', 'getAchievement'],
      ['listPinnedAchievements', 'getAchievement'],
    ] as const) {
      const { location, ...inList } = item(list, one)!;
      expect(shown[one]).toMatchObject(inList);
      expect(shown[one]!.location ?? null).toEqual(location ? expect.objectContaining(location) : null);
    }
    const ids = operations().flatMap(({ operation }) =>
      operation.parameters.flatMap(({ in: place, name, schema }) =>
        place === 'path' && name === 'id' ? [[shown[operation.operationId]!.id, schema.examples]] : [],
      ),
    );
    expect(ids).toEqual(ids.map(([id]) => [id, [id]]));
    // All examples show one member.
    const { getMe: me, getProfile: profile, updateProfile: updated } = shown;
    expect(profile).toMatchObject({ id: me!.id, username: me!.username, display_name: me!.display_name });
    expect(updated!.profile).toMatchObject({ id: me!.id, username: me!.username });
    expect(shown.getCredential).toMatchObject({ user_id: me!.id });
    expect(item('listEvents', 'getEvent')!.organizer).toMatchObject({ id: me!.id, username: me!.username });
    const total = (name: string) => shown[name]!.pagination!.total;
    const { total: all, earned, by_category, by_rarity } = shown.getAchievementStatistics!;
    expect([all, earned]).toEqual([total('listAllAchievements'), total('listEarnedAchievements')]);
    for (const parts of [by_category!, by_rarity!])
      expect([sum(parts, 'total'), sum(parts, 'earned')]).toEqual([all, earned]);
    expect(profile).toMatchObject({
      achievements_count: earned,
      connections_count: total('listConnections'),
    });
    for (const [name, { data, pagination }] of Object.entries(shown).filter(
      ([, value]) => value?.pagination,
    )) {
      const { count, limit, total: whole, has_more, next_cursor } = pagination!;
      expect([name, data!.length, has_more]).toEqual([name, Math.min(limit, whole), whole > limit]);
      expect([name, count]).toEqual([name, data!.length]);
      // After the signature follows the position: a direction, the sort key, and the id.
      const position = next_cursor && Buffer.from(next_cursor, 'base64url').subarray(16).toString();
      const last = position === null ? null : (JSON.parse(position) as unknown[]).toSpliced(1, 1);
      expect([name, last]).toEqual([name, has_more ? ['after', data!.at(-1)!.id] : null]);
    }
    expect(shown.listProblems!.data).toContainEqual(shown.getProblem);
    const codes = shown.listProblems!.data!.map(({ code }) => code);
    for (const { operation } of operations())
      expect(codes).toEqual(expect.arrayContaining([...operation['x-problems']]));
  });

  it('has this server’s public URL in its examples, and not the default URL', () => {
    expect(JSON.stringify(document)).toContain(`${api.config.publicUrl}/api/public/problems/event_not_found`);
    if (api.config.publicUrl !== 'http://localhost:3000')
      expect(JSON.stringify(document)).not.toContain('http://localhost:3000');
  });
});
