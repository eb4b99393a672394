import { CHANGE_KINDS, RESOURCES } from '../changes/changes.js';

/** The types of messages: `<resource>.<kind>`. A profile is never removed while anybody may be notified about it. */
export const WEBHOOK_TYPES = RESOURCES.flatMap((resource) =>
  CHANGE_KINDS.map((kind) => `${resource}.${kind}`),
).filter((type) => type !== 'profile.removed');

/** The type that `pua webhooks test` sends. */
export const TEST_TYPE = 'webhook.test';

/** Returns the scope that a credential needs for messages of the type. */
export function scopeOf(type: string): string {
  return `${type.split('.')[0]}:read`;
}
