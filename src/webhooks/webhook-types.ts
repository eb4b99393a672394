import { CHANGE_KINDS } from '../changes/changes.js';
import { RESOURCES } from '../resources/resources.js';

/** The types of messages: `<resource>.<kind>`. A profile is never removed while anybody may be notified about it. */
export const WEBHOOK_TYPES = RESOURCES.flatMap((resource) =>
  CHANGE_KINDS.map((kind) => `${resource}.${kind}`),
).filter((type) => type !== 'profile.removed');

/** The type that `pua webhooks test` sends. */
export const TEST_TYPE = 'webhook.test';
