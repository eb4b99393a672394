import { achievements, userAchievements } from '../resources/achievements/import.js';
import { connections } from '../resources/connections/import.js';
import { events, participants } from '../resources/events/import.js';
import { users } from '../resources/profile/import.js';
import type { RecordType } from './record-type.js';

/** The record types; referenced types precede the types that refer to them. */
export const RECORD_TYPES: readonly RecordType[] = [
  users,
  achievements,
  events,
  participants,
  connections,
  userAchievements,
];
