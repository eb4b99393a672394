import { CHANGE_KINDS, RESOURCES } from '../changes/changes.js';

/** What a message can tell: `<resource>.<kind>`. A profile is never removed while anybody may be told of it. */
export const WEBHOOK_TYPES = RESOURCES.flatMap((resource) =>
  CHANGE_KINDS.map((kind) => `${resource}.${kind}`),
).filter((type) => type !== 'profile.removed');

/** What `pua webhooks test` sends. */
export const TEST_TYPE = 'webhook.test';

/** Gives the scope that a credential needs to be told of the type. */
export function scopeOf(type: string): string {
  return `${type.split('.')[0]}:read`;
}
