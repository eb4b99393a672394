import type { AuthEventType } from './audit.js';

/** Events that members are notified of, and whether they can mute the email. schema/notices.sql has the same list. */
export const NOTICES = {
  'consent.granted': { canMute: true },
  'access.ending': { canMute: true },
  'key.created': { canMute: true },
  'key.rotated': { canMute: true },
  'key.ending': { canMute: true },
  'calendar_link.created': { canMute: true },
  'client.reviewed': { canMute: true },
  'passkey.added': { canMute: false },
  'passkey.removed': { canMute: false },
  'user.password_set': { canMute: false },
} as const satisfies Partial<Record<AuthEventType, { canMute: boolean }>>;

export type NoticeType = keyof typeof NOTICES;

export const NOTICE_TYPES = Object.keys(NOTICES) as NoticeType[];
