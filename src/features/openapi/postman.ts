import { EXAMPLES, RECORDED_AT } from './examples.js';
import type { Example } from './examples.js';
import type { Endpoint, Field } from './reference.js';

/**
 * The API as a Postman collection (v2.1): a folder for each group, each call with its parameters, optional ones switched
 * off, and with the responses of the demo. Whoever imports it sets `api_key`; Postman is not a browser, so a key may be used there.
 *
 * @param name of the API
 * @param endpoints as {@link endpointsOf} gives them
 */
export function postmanCollection(name: string, publicUrl: string, endpoints: readonly Endpoint[]): object {
  const groups = Map.groupBy(endpoints, ({ tag }) => tag);
  return {
    info: {
      name,
      description: `A member’s own profile, events, connections and achievements. Set the variable \`api_key\`; the reference is at ${publicUrl}/docs.`,
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: 'X-API-Key', type: 'string' },
        { key: 'value', value: '{{api_key}}', type: 'string' },
        { key: 'in', value: 'header', type: 'string' },
      ],
    },
    variable: [
      { key: 'base_url', value: publicUrl },
      { key: 'api_key', value: '' },
    ],
    item: [...groups].map(([group, ofGroup]) => ({
      name: group,
      item: ofGroup.map((endpoint) => itemOf(endpoint, publicUrl)),
    })),
  };
}

function itemOf(endpoint: Endpoint, publicUrl: string): object {
  const examples = EXAMPLES[endpoint.name] ?? [];
  const request = requestOf(endpoint, examples[0]);
  return {
    name: endpoint.summary,
    request,
    response: examples.map(({ summary, response: { status, headers, body } }) => ({
      name: summary,
      originalRequest: request,
      code: status,
      header: Object.entries(headers).map(([key, value]) => ({
        key,
        value: value.replaceAll(RECORDED_AT, publicUrl),
      })),
      body: JSON.stringify(body, null, 2).replaceAll(RECORDED_AT, publicUrl),
    })),
  };
}

function requestOf(endpoint: Endpoint, example: Example | undefined): object {
  const { method, path, description, scope, parameters, fixed } = endpoint;
  const sent = new URL(example?.request.path ?? path, RECORDED_AT).searchParams;
  const segments = path.slice(1).split('/');
  const inPath = parameters.filter(({ place }) => place === 'path');
  const query = [
    ...Object.entries(fixed).map(([key, value]) => ({ key, value })),
    ...parameters
      .filter(({ place }) => place === 'query')
      .map((parameter) => queryOf(parameter, sent.get(parameter.name))),
  ];
  const active = query.filter((parameter) => !('disabled' in parameter && parameter.disabled));
  const body = example?.request.body;
  const segment = (text: string) => text.replace(/^\{(\w+)\}$/, ':$1');
  return {
    method,
    description,
    ...(scope === undefined ? { auth: { type: 'noauth' } } : {}),
    header: body === undefined ? [] : [{ key: 'Content-Type', value: 'application/json' }],
    url: {
      raw: `{{base_url}}/${segments.map(segment).join('/')}${active.length === 0 ? '' : `?${active.map(({ key, value }) => `${key}=${value}`).join('&')}`}`,
      host: ['{{base_url}}'],
      path: segments.map(segment),
      ...(query.length === 0 ? {} : { query }),
      ...(inPath.length === 0
        ? {}
        : { variable: inPath.map(({ name, example: value }) => ({ key: name, value: value ?? '' })) }),
    },
    ...(body === undefined ? {} : { body: { mode: 'raw', raw: JSON.stringify(body, null, 2) } }),
  };
}

function queryOf({ name, description, required, default: fallback, allowed }: Field, sent: string | null) {
  return {
    key: name,
    value: sent ?? fallback ?? allowed[0] ?? '',
    description,
    ...(required || sent !== null ? {} : { disabled: true }),
  };
}
