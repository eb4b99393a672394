import { accessOf } from '../auth/auth.guards.js';
import { isScope, type Scope } from '../auth/scopes.js';
import type { QueryClass } from '../http/input/parameters.js';
import { invalidParameter, queryOfHandler, queryProblem } from '../http/input/query.js';
import { describeOperation } from '../http/output/openapi.js';
import { etagOfVersion, versionOf, type JsonResponse } from '../http/output/responses.js';
import { propertiesOf, schemaNamed, type JsonSchema } from '../model/json-schema.js';
import type { RouteCall } from './route-calls.js';
import type { Route } from '../http/route-table.js';

type Json = Record<string, unknown>;

type Call = (handler: string, call: RouteCall) => Promise<JsonResponse>;

/** A tool for assistants, which calls one or more routes of the API. */
export interface Tool {
  readonly name: string;
  /** The caller must have one of these scopes. */
  readonly scopes: readonly Scope[];
  readonly writes: boolean;
  readonly listed: Json;
  readonly listsChanges: boolean;
  /** @throws Problem for a missing argument, and for an unknown one unless the tool writes */
  readonly check: (values: Readonly<Json>) => void;
  /** @throws Problem for an invalid argument, and errors of the route */
  readonly use: (values: Readonly<Json>, call: Call, scopes: readonly Scope[]) => Promise<Json>;
}

/** Additions to a route's tool, and replacements of its texts. */
interface Tuning {
  readonly name?: string;
  readonly description?: string;
  /** Fields of an item that the tool returns by default. */
  readonly brief?: readonly string[];
  readonly defaults?: (values: Readonly<Json>) => Json;
  /** Handler of another route, whose fields the tool also returns. */
  readonly besides?: string;
}

const TUNED: Readonly<Record<string, Tuning>> = {
  getProfile: {
    description:
      'The member’s profile: names, bio, picture, join date, and numbers of connections and achievements.',
    besides: 'getMe',
  },
  updateProfile: {
    description:
      'Changes only the given fields; null clears a field. If any is invalid, nothing is saved. Ask the member before you use this tool.',
  },
  listEvents: {
    description:
      'Only events that the member organizes, attends or is invited to. Next events: time_filter upcoming. Open invitations: rsvp_status pending. It has the number of people going, not their names.',
    brief: [
      'id',
      'title',
      'status',
      'starts_at_local',
      'ends_at_local',
      'timezone',
      'is_online',
      'location',
      'role',
      'rsvp_status',
    ],
    defaults: ({ time_filter }) => (time_filter === 'upcoming' ? { sort: 'starts_at' } : {}),
  },
  getEvent: {
    description:
      'One event with its description, tags, address, link, organizers, free places, and when the member responded and checked in. It has the number of people going, not their names.',
  },
  listConnections: {
    description:
      'The people whom the member is connected with, and the event where they met. Open requests from others: status pending_received; requests of the member: pending_sent. Default: only accepted ones.',
    brief: ['user', 'status', 'connected_at', 'met_at_event'],
  },
  listEarnedAchievements: {
    brief: ['id', 'name', 'description', 'category', 'rarity', 'points', 'earned_at'],
  },
  listAllAchievements: {
    description:
      'All achievements with the member’s progress. To find nearly earned ones: earned false, sort -progress. Hidden ones are masked until they are earned.',
    brief: ['id', 'name', 'description', 'category', 'earned', 'progress'],
  },
  listPinnedAchievements: { brief: ['id', 'name', 'description', 'rarity', 'pin_position'] },
  getAchievement: { description: 'One achievement: its criteria, and how many members have earned it.' },
  getAchievementStatistics: {
    name: 'achievement_statistics',
    description:
      'The number of achievements and points, in total and earned by the member, by category and rarity.',
  },
};

/** Handlers whose fields another tool includes. */
const TOLD_BY_OTHERS = new Set(Object.values(TUNED).map(({ besides }) => besides));
const VERSION = {
  type: 'string',
  description: '`version` from get_profile: nothing is saved if the profile has changed since then',
};
/** Default number of items; small, since a model reads each item. */
const USUAL_ITEMS = 10;
/** URLs of images, which lists omit by default, since they are long. */
const IMAGES: readonly string[] = ['profile_picture', 'cover_image', 'icon_url'];

/** Makes a route's tool; undefined if the route requires no scope of members, or other tools cover it. */
export function makeTool({ handler, controller, method }: Route): Tool | undefined {
  const scope = accessOf(handler, controller);
  const query = queryOfHandler(handler);
  if (!isScope(scope ?? '') || TOLD_BY_OTHERS.has(handler.name)) return undefined;
  if (typeof query !== 'function') return undefined; // each view has its own tool
  const { summary: title, description, response, parameters, body } = describeOperation(handler);
  const { name, besides, defaults, ...tuned } = TUNED[handler.name] ?? {};
  const inPath = parameters.filter((one) => one.in === 'path').map((one) => one.name);
  const fields = fieldsOfItem(response!);
  const properties: Record<string, JsonSchema> = {
    ...Object.fromEntries(inPath.map((one) => [one, { type: 'integer' }])),
    ...describeArguments(query),
    ...(fields ? { fields: { type: 'array', items: { type: 'string', enum: fields } } } : {}),
    ...(body ? { ...propertiesIn(body.content['application/json']!.schema), version: VERSION } : {}),
  };
  return {
    scopes: [scope as Scope],
    listsChanges: Object.hasOwn(properties, 'updated_since'),
    ...described({
      name: name ?? handler.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      title,
      description: tuned.description ?? description,
      properties,
      required: inPath,
      writes: method !== 'GET',
    }),
    use: async (all, call) => {
      const { fields: asked, ...others } = all;
      const given = fields ? others : all;
      const usual = 'limit' in properties ? { limit: USUAL_ITEMS } : {};
      const values = { ...usual, ...defaults?.(given), ...given };
      const [also, { json, headers }] = await Promise.all([
        besides === undefined ? undefined : call(besides, { params: {}, query: '' }),
        call(handler.name, makeCall(values, inPath, body !== undefined)),
      ]);
      const answer = JSON.parse(String(json)) as Json;
      if (fields) return pageWith(chosen(asked ?? tuned.brief ?? fields, fields), answer as never);
      const version = headers.ETag === undefined ? {} : { version: versionOf(headers.ETag) };
      return { ...(also ? (JSON.parse(String(also.json)) as Json) : {}), ...answer, ...version };
    },
  };
}

/** Makes the tool that reads changes since a time from those of the lists that the caller may read. */
export function changesTool(lists: readonly Tool[]): Tool {
  return {
    scopes: lists.flatMap(({ scopes }) => scopes),
    listsChanges: false,
    ...described({
      name: 'changes_since',
      title: 'List changes',
      description:
        'All items that are new or changed since a time: events and RSVPs, connections and requests, achievements. It does not list removed items.',
      properties: {
        updated_since: { type: 'string' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          default: 5,
          description: 'Maximum items of each list',
        },
      },
      required: ['updated_since'],
      writes: false,
    }),
    use: async (values, call, scopes) => {
      const [covered, others] = [true, false].map((may) =>
        lists.filter((list) => scopes.includes(list.scopes[0]!) === may),
      );
      const nameOf = (list: Tool) => list.scopes[0]!.split(':')[0]!;
      const answers = await Promise.all(
        covered!.map(
          async (list) => [nameOf(list), await list.use({ limit: 5, ...values }, call, scopes)] as const,
        ),
      );
      return {
        ...Object.fromEntries(answers),
        ...(others!.length > 0 ? { not_allowed: others!.map(nameOf) } : {}),
      };
    },
  };
}

interface Description {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly required: readonly string[];
  readonly writes: boolean;
}

function described({ name, title, description, properties, required, writes }: Description) {
  const inputSchema = {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  const annotations = { readOnlyHint: !writes, destructiveHint: writes, openWorldHint: false };
  return {
    name,
    writes,
    listed: { name, title, description, inputSchema, annotations },
    check: (values: Readonly<Json>) => {
      const missing = required.filter((one) => (values[one] ?? null) === null);
      // If the tool writes, the route checks the body, and reports all its faults at once.
      const unknown = writes ? [] : Object.keys(values).filter((one) => !Object.hasOwn(properties, one));
      const names = Object.keys(properties).join(', ') || 'none';
      const faults = [
        ...missing.map((parameter) => ({
          parameter,
          code: 'missing_parameter',
          detail: `${parameter} is required.`,
        })),
        ...unknown.map((parameter) => ({
          parameter,
          code: 'unknown_parameter',
          detail: `There is no argument ${parameter.toWellFormed()}. The arguments are: ${names}.`,
        })),
      ];
      if (faults.length > 0) throw queryProblem(faults);
    },
  };
}

function makeCall(values: Readonly<Json>, inPath: readonly string[], takesBody: boolean): RouteCall {
  const params = Object.fromEntries(inPath.map((name) => [name, textOf(values[name])]));
  if (takesBody) {
    const { version, ...changes } = values;
    return { params, query: '', body: Buffer.from(JSON.stringify(changes)), ifMatch: ifMatchOf(version) };
  }
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (!inPath.includes(name))
      for (const one of [value].flat()) if (one !== null) query.append(name, textOf(one));
  return { params, query: query.toString() };
}

function ifMatchOf(version: unknown): string | undefined {
  if (version === undefined || version === null) return undefined;
  const etag = etagOfVersion(textOf(version));
  if (etag !== undefined) return etag;
  const detail = 'version is malformed: pass the version from get_profile, or omit it.';
  throw invalidParameter('version', detail);
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** @throws Problem invalid_parameter for an unknown field */
function chosen(asked: unknown, fields: readonly string[]): readonly string[] {
  const names = [asked].flat();
  if (names.every((name) => fields.includes(name as string))) return names as string[];
  const detail = `fields must be a list of these values: ${fields.join(', ')}.`;
  throw invalidParameter('fields', detail, fields);
}

function pageWith(
  fields: readonly string[],
  { data, pagination }: { readonly data: readonly Json[]; readonly pagination: Json },
): Json {
  const hidden = IMAGES.filter((name) => !fields.includes(name));
  const items = data.map((item) => {
    const picked: Json = {};
    for (const field of fields) {
      const [name, part] = field.split('.') as [string, string?];
      const value = item[name] as Json | null;
      picked[name] =
        part === undefined || value === null ? value : { ...(picked[name] as object), [part]: value[part] };
    }
    return picked;
  });
  return { total: pagination.total, data: without(hidden, items), next_cursor: pagination.next_cursor };
}

const without = (names: readonly string[], value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, part: unknown) => (names.includes(name) ? undefined : part)));

const OF_DOCUMENT = '#/components/schemas/';

/** Inlines referenced schemas, so that models see the allowed values. */
function inlined(schema: JsonSchema): JsonSchema {
  return JSON.parse(
    JSON.stringify(schema, (_, value: { $ref?: string } | null) =>
      value?.$ref ? schemaNamed(value.$ref.slice(OF_DOCUMENT.length)) : value,
    ),
  ) as JsonSchema;
}

interface ObjectSchema extends JsonSchema {
  readonly properties: Readonly<Record<string, JsonSchema>>;
}

const propertiesIn = (schema: JsonSchema) => (inlined(schema) as ObjectSchema).properties;

/** Lists the fields of a list's items, and the texts in their objects (`location.city`); undefined if the response is not a list. */
function fieldsOfItem(response: JsonSchema): string[] | undefined {
  const { data, pagination } = propertiesIn(response);
  if (!data || !pagination) return undefined;
  const { properties } = data.items as ObjectSchema;
  return Object.entries(properties).flatMap(([name, schema]) => {
    const [object = schema] = (schema.allOf ?? schema.anyOf ?? []) as JsonSchema[];
    const parts = Object.entries((object as Partial<ObjectSchema>).properties ?? {})
      .filter(([part, { type }]) => [type].flat().includes('string') && !IMAGES.includes(part))
      .map(([part]) => `${name}.${part}`);
    return [name, ...parts];
  });
}

/** Returns a query's parameters as arguments, with default values and fewer schema keywords. */
function describeArguments(query: QueryClass): Record<string, JsonSchema> {
  const defaults = new query() as Json;
  return Object.fromEntries(
    Array.from(propertiesOf(query), ([name, { schema }]) => {
      const { style: _s, explode: _e, pattern: _p, examples: _x, format: _f, ...rules } = schema;
      const usual = name === 'limit' ? USUAL_ITEMS : defaults[name];
      return [name, { ...inlined(rules), default: usual }];
    }),
  );
}
