import { CHANGE_KINDS, RESOURCES } from '../resources/resources.js';

const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/** @param data properties of the message's `data`, all required */
const message = (
  operationId: string,
  summary: string,
  types: readonly string[],
  data: Record<string, object>,
) => ({
  post: {
    operationId,
    summary,
    security: [],
    parameters: HEADERS.map((name) => ({ name, in: 'header', required: true, schema: { type: 'string' } })),
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['type', 'timestamp', 'data'],
            properties: {
              type: { type: 'string', enum: types },
              timestamp: { type: 'string', format: 'date-time' },
              data: { type: 'object', required: Object.keys(data), properties: data },
            },
          },
        },
      },
    },
    responses: { '2XX': { description: 'The endpoint accepted the message.' } },
  },
});

/** The messages to webhook endpoints of apps and keys (docs/developers/webhooks.md). */
export const WEBHOOKS = {
  change: message(
    'onChange',
    'A member’s item changed, or left the member’s lists',
    RESOURCES.flatMap((resource) => CHANGE_KINDS.map((kind) => `${resource}.${kind}`)).filter(
      (type) => type !== 'profile.removed',
    ),
    {
      member_id: { type: 'integer', format: 'int64' },
      resource: { type: 'string', enum: RESOURCES },
      id: { type: 'integer', format: 'int64' },
      kind: { type: 'string', enum: CHANGE_KINDS },
    },
  ),
  access: message(
    'onAccess',
    'An app’s access or a key changed, ends soon or has ended',
    ['access.changed', 'access.ending', 'access.ended', 'credential.ending', 'credential.ended'],
    {
      member_id: { type: 'integer', format: 'int64' },
      scopes: { type: 'array', items: { type: 'string' } },
      access_ends_at: { type: ['string', 'null'] },
      reason: { type: ['string', 'null'], enum: ['member', 'app', 'platform', 'expired', 'unused', null] },
    },
  ),
};
