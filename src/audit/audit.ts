import type { AuthEvent } from '../database/entities/auth-event.entity.js';

/** What a detail can be, by the word that docs/audit.md has for it. */
interface DetailTypes {
  text: string;
  texts: readonly string[];
  number: number;
  boolean: boolean;
  /** How many there were of what is named. */
  counts: Readonly<Record<string, number>>;
}

interface EventDefinition {
  readonly meaning: string;
  /** What it tells beside who, when, which member, client and key. */
  readonly details: Readonly<Record<string, readonly [type: keyof DetailTypes, meaning: string]>>;
}

/**
 * Every event of the audit trail: type → meaning and details. This list is the only one: no other type can be recorded, and
 * docs/audit.md is made of it. A detail is a word, a number or a name of ours, or was typed by an admin: never what a
 * caller sent.
 */
export const AUTH_EVENTS = {
  'user.created': { meaning: 'A member was made', details: {} },
  'user.updated': {
    meaning: 'The account of a member was changed by an admin',
    details: { changed: ['texts', 'what of it: columns of `users`'] },
  },
  'user.password_set': {
    meaning: 'A member was given a new password, or set one themselves',
    details: { sessions_kept: ['boolean', 'whether their sign-ins elsewhere went on'] },
  },
  'user.password_reset_sent': {
    meaning: 'A member was sent a mail with which they can set a new password',
    details: {},
  },
  'user.password_switched': {
    meaning: 'A member switched signing in with the password off, or on again',
    details: { on: ['boolean', 'whether the password opens the account now'] },
  },
  'user.disabled': { meaning: 'A member was disabled, and all their access ended', details: {} },
  'user.enabled': { meaning: 'A member was enabled again', details: {} },
  'user.exported': { meaning: 'A member downloaded all that is held about them', details: {} },
  'user.erased': {
    meaning:
      'Everything of a member but the id was taken away; so were the addresses and details of their events here',
    details: {},
  },
  'sign_in.succeeded': {
    meaning: 'A member signed in',
    details: { method: ['text', 'password, passkey, or upstream: with the platform’s own login'] },
  },
  'sign_in.refused': {
    meaning:
      'A sign-in under the name of a member was refused; under a name that nobody has it is not recorded',
    details: {
      method: ['text', 'password, passkey or upstream'],
      reason: [
        'text',
        'no_password, disabled, wrong_password, account_blocked, address_blocked or device_blocked; of a passkey wrong_proof, or counter_went_back: there may be a copy of it',
      ],
    },
  },
  'passkey.added': {
    meaning: 'A member added a passkey',
    details: {
      passkey: ['number', 'id of the passkey'],
      synced: ['boolean', 'whether it is on other devices'],
    },
  },
  'passkey.removed': {
    meaning: 'A passkey of a member was removed',
    details: { passkey: ['number', 'id of the passkey'] },
  },
  'session.ended': {
    meaning: 'Browser sessions of a member were ended',
    details: {
      session: ['text', 'one session: the beginning of its name'],
      sessions: ['number', 'how many, where it was all'],
    },
  },
  'session.signed_out': { meaning: 'A member signed out on the account pages', details: {} },
  'consent.granted': {
    meaning: 'A member allowed an app what it asked for, or a part of it',
    details: { granted: ['texts', 'scopes'], rejected: ['texts', 'scopes that were unticked'] },
  },
  'consent.denied': {
    meaning: 'A member allowed an app nothing',
    details: { scopes: ['texts', 'that it asked for'] },
  },
  'access.revoked': {
    meaning: 'The access of one app, or of all, to a member’s data was ended',
    details: {
      grants: ['number', 'how many sign-ins of apps ended'],
      sessions: ['number', 'how many browser sessions, where it was all access'],
    },
  },
  'authorization.refused': {
    meaning: 'A request of an app that concerns a member was refused, by any endpoint but the token endpoint',
    details: { error: ['text', 'code of the answer (RFC 6749 §4.1.2.1)'], reason: ['text', 'see below'] },
  },
  'token.issued': {
    meaning: 'A code was redeemed',
    details: { grant: ['text', 'id of the sign-in of the app'], scope: ['text', 'of the access token'] },
  },
  'token.refreshed': {
    meaning: 'A refresh token was used',
    details: { grant: ['text', 'id of the sign-in of the app'], scope: ['text', 'of the access token'] },
  },
  'token.refused': {
    meaning: 'The token endpoint refused a request that concerns a member',
    details: { error: ['text', 'code of the answer (RFC 6749 §5.2)'], reason: ['text', 'see below'] },
  },
  'token.reused': {
    meaning:
      'A code or refresh token was used a second time: it was stolen, and all tokens of that sign-in ended',
    details: { grant: ['text', 'id of the sign-in of the app'] },
  },
  'grant.revoked': {
    meaning: 'An app revoked a token, and so its sign-in',
    details: { grant: ['text', 'id of the sign-in of the app'] },
  },
  'key.created': {
    meaning: 'An API key was issued',
    details: { name: ['text', 'of the key'], scopes: ['texts', 'of the key'] },
  },
  'key.rotated': {
    meaning: 'An API key was replaced',
    details: {
      replaced_by: ['text', 'id of the new key'],
      overlap_seconds: ['number', 'for which both are accepted'],
    },
  },
  'key.revoked': {
    meaning: 'An API key was revoked',
    details: { reason: ['text', 'as the admin wrote it'] },
  },
  'key.exposed': {
    meaning: 'An API key came from a browser for the first time: `pua keys show` has the page’s origin',
    details: {},
  },
  'calendar_link.created': {
    meaning: 'A member made a link under which calendar programs read their events',
    details: { link: ['number', 'id of the link'] },
  },
  'calendar_link.revoked': {
    meaning: 'A member revoked a calendar link',
    details: { link: ['number', 'id of the link'] },
  },
  'client.created': {
    meaning: 'An app was registered',
    details: {
      name: ['text', 'of the app'],
      scopes: ['texts', 'that it may ask for'],
      redirect_uris: ['texts', 'of the app'],
    },
  },
  'client.updated': {
    meaning: 'The registration of an app was changed',
    details: {
      changed: ['texts', 'what of it: columns of `oauth_clients`'],
      redirect_uris: ['texts', 'of the app, where they were changed'],
      scopes: ['texts', 'that it may ask for, where they were changed'],
      grants: ['number', 'how many sign-ins of the app ended, where it lost scopes that they held'],
    },
  },
  'client.disabled': { meaning: 'An app was disabled', details: {} },
  'client.enabled': { meaning: 'An app was enabled again', details: {} },
  'client.deleted': {
    meaning: 'An app was deleted, and all access that members gave it ended',
    details: { name: ['text', 'of the app'], grants: ['number', 'how many sign-ins of the app ended'] },
  },
  'signing_key.rotated': {
    meaning: 'The keys that sign ID tokens moved on by one',
    details: { next: ['text', 'id of the key that was made'] },
  },
  'webhook.created': {
    meaning: 'A receiver of webhooks was registered',
    details: { webhook: ['text', 'its id'], types: ['texts', 'what it is told of'] },
  },
  'webhook.rotated': {
    meaning: 'A receiver of webhooks was given another secret',
    details: {
      webhook: ['text', 'its id'],
      overlap_seconds: ['number', 'for which messages are signed with both'],
    },
  },
  'webhook.disabled': {
    meaning: 'Nothing more is sent to a receiver of webhooks',
    details: {
      webhook: ['text', 'its id'],
      reason: ['text', 'admin, or failing: it took nothing for five days'],
    },
  },
  'platform.imported': {
    meaning: 'An import changed something',
    details: {
      users: ['counts', 'what became of the records of that file, in numbers'],
      events: ['counts', 'the same'],
      participants: ['counts', 'the same'],
      connections: ['counts', 'the same'],
      achievements: ['counts', 'the same'],
      user_achievements: ['counts', 'the same'],
    },
  },
  'audit.pruned': {
    meaning: 'The deletion of old events by hand was begun',
    details: { older_than_seconds: ['number', 'what was asked for'] },
  },
} as const satisfies Readonly<Record<string, EventDefinition>>;

export type AuthEventType = keyof typeof AUTH_EVENTS;

type DetailsOf<Type extends AuthEventType> = (typeof AUTH_EVENTS)[Type]['details'];

type DetailType<Definition> = Definition extends readonly [infer Type extends keyof DetailTypes, string]
  ? DetailTypes[Type]
  : never;

/** An event of the audit trail as it is recorded. Nothing in it may be secret. */
export type NewAuthEvent = {
  [Type in AuthEventType]: {
    readonly type: Type;
    /** `admin` is the command line. */
    readonly actor: AuthEvent['actor'];
    readonly userId?: number | null;
    /** Of a client that exists. */
    readonly clientId?: string | null;
    readonly keyId?: string | null;
    readonly ip?: string | null;
    readonly errorId?: string | null;
    readonly details?: {
      readonly [Name in keyof DetailsOf<Type>]?: DetailType<DetailsOf<Type>[Name]> | undefined;
    };
  };
}[AuthEventType];

const COLUMNS = '(type, actor, user_id, client_id, key_id, ip, error_id, details)';

const RECORD_EVENT = `INSERT INTO auth_events ${COLUMNS} VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;

/**
 * Writes SQL that records an event where `source` has a row: a part of a statement that does what is recorded.
 *
 * @param first number of the first of the parameters that are {@link eventValues}
 */
export function recordEventIf(source: string, first: number): string {
  const types = ['text', 'text', 'bigint', 'text', 'text', 'inet', 'text', 'jsonb'];
  const values = types.map((type, i) => `$${first + i}::${type}`);
  return `INSERT INTO auth_events ${COLUMNS} SELECT ${values.join(', ')} FROM ${source}`;
}

/** Gives an event as the parameters of {@link recordEventIf}. */
export function eventValues(event: NewAuthEvent): unknown[] {
  return [
    event.type,
    event.actor,
    event.userId ?? null,
    event.clientId ?? null,
    event.keyId ?? null,
    event.ip ?? null,
    event.errorId ?? null,
    boundedDetails(event.details ?? {}),
  ];
}

/** Records one event by whatever runs statements: a DataSource, the manager of a transaction, or what has bounds of its own. */
export async function recordEvent(
  database: { query(text: string, values: unknown[]): Promise<unknown> },
  event: NewAuthEvent,
): Promise<void> {
  await database.query(RECORD_EVENT, eventValues(event));
}

/** Of the JSON. PostgreSQL writes it with more spaces, at most as long again: its CHECK is 2,000. */
const MOST_BYTES = 1_000;
const MOST_ITEMS = 10;

/**
 * Writes details as JSON that the database takes whatever stands in them: an event must never make what it tells of fail. Long
 * texts and lists are clipped, as little as will do.
 */
export function boundedDetails(details: object): string {
  for (const longest of [600, 150, 40]) {
    const json = JSON.stringify(details, (_, value: unknown) => clipped(value, longest));
    if (Buffer.byteLength(json) <= MOST_BYTES) return json;
  }
  return '{"clipped":true}';
}

function clipped(value: unknown, longest: number): unknown {
  if (Array.isArray(value) && value.length > MOST_ITEMS) {
    return [...(value.slice(0, MOST_ITEMS - 1) as unknown[]), `and ${value.length - MOST_ITEMS + 1} more`];
  }
  // PostgreSQL writes 1e300 in 301 digits.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : String(value);
  if (typeof value !== 'string') return value;
  const storable = value.replaceAll('\0', '\u{fffd}').toWellFormed();
  return storable.length <= longest ? storable : `${storable.slice(0, longest).toWellFormed()}…`;
}
