import type { DataSource, EntityManager } from 'typeorm';
import type { AuthEvent } from '../database/schema/entities/credentials/auth-event.entity.js';

/** The types of details, by their names in docs/audit.md. */
interface DetailTypes {
  text: string;
  texts: readonly string[];
  number: number;
  boolean: boolean;
  /** How many there were of each. */
  counts: Readonly<Record<string, number>>;
}

interface EventDefinition {
  readonly meaning: string;
  /** What it records besides time, actor, member, client and key. */
  readonly details: Readonly<Record<string, readonly [type: keyof DetailTypes, meaning: string]>>;
}

/**
 * Every event of the audit trail: type → meaning and details. This list is the only one: no other type can be recorded, and
 * docs/audit.md is generated from it. A detail is a word, number or name of ours, or was typed by an admin: never what a
 * caller sent.
 */
export const AUTH_EVENTS = {
  'user.created': { meaning: 'A member was created', details: {} },
  'user.updated': {
    meaning: 'An admin changed a member’s account',
    details: { changed: ['texts', 'the changed columns of `users`'] },
  },
  'user.password_set': {
    meaning: 'A member was given a new password, or set one',
    details: { sessions_kept: ['boolean', 'whether existing sessions and access were kept'] },
  },
  'user.password_reset_sent': {
    meaning: 'A member was sent a mail with a link to set a new password',
    details: {},
  },
  'user.password_switched': {
    meaning: 'A member switched sign-in with a password off, or on again',
    details: { on: ['boolean', 'whether the password is now accepted'] },
  },
  'user.disabled': { meaning: 'A member was disabled, which ended all access to their data', details: {} },
  'user.enabled': { meaning: 'A member was enabled again', details: {} },
  'user.exported': { meaning: 'A member downloaded everything that is held about them', details: {} },
  'user.erased': {
    meaning:
      'Everything about a member except the id was erased, including the addresses and details of their events in this trail',
    details: {},
  },
  'sign_in.succeeded': {
    meaning: 'A member signed in',
    details: { method: ['text', 'password, passkey, or upstream (the platform’s own login)'] },
  },
  'sign_in.refused': {
    meaning:
      'A sign-in with the username of a member was refused; it is not recorded if no member has that username',
    details: {
      method: ['text', 'password, passkey or upstream'],
      reason: [
        'text',
        'no_password, disabled, wrong_password, account_blocked, address_blocked or device_blocked; for a passkey wrong_proof or counter_went_back (the passkey may have been cloned)',
      ],
    },
  },
  'passkey.added': {
    meaning: 'A member added a passkey',
    details: {
      passkey: ['number', 'id of the passkey'],
      synced: ['boolean', 'whether it is synced to other devices'],
    },
  },
  'passkey.removed': {
    meaning: 'A member’s passkey was removed',
    details: { passkey: ['number', 'id of the passkey'] },
  },
  'session.ended': {
    meaning: 'One or all of a member’s browser sessions were ended',
    details: {
      session: ['text', 'the beginning of the session’s name, if it was one session'],
      sessions: ['number', 'how many, if it was all of them'],
    },
  },
  'session.signed_out': { meaning: 'A member signed out on the account pages', details: {} },
  'consent.granted': {
    meaning: 'A member granted an app all or some of the scopes that it requested',
    details: { granted: ['texts', 'granted scopes'], rejected: ['texts', 'scopes that the member unticked'] },
  },
  'consent.denied': {
    meaning: 'A member denied an app access',
    details: { scopes: ['texts', 'requested scopes'] },
  },
  'access.revoked': {
    meaning: 'The access of one app, or of all apps, to a member’s data was revoked',
    details: {
      grants: ['number', 'how many grants ended'],
      sessions: ['number', 'how many browser sessions ended, if all access was revoked'],
    },
  },
  'authorization.refused': {
    meaning:
      'An endpoint other than the token endpoint refused a request of an app that concerns a member, or, recorded once an hour for an app, came from a page of another origin',
    details: {
      error: ['text', 'error code of the response (RFC 6749 §4.1.2.1)'],
      reason: ['text', 'see below'],
    },
  },
  'token.issued': {
    meaning: 'An authorization code was exchanged for tokens',
    details: { grant: ['text', 'id of the grant'], scope: ['text', 'scope of the access token'] },
  },
  'token.refreshed': {
    meaning: 'A refresh token was used',
    details: { grant: ['text', 'id of the grant'], scope: ['text', 'scope of the access token'] },
  },
  'token.refused': {
    meaning:
      'The token endpoint refused a request that concerns a member, or, recorded once an hour for an app, came from a page of another origin',
    details: { error: ['text', 'error code of the response (RFC 6749 §5.2)'], reason: ['text', 'see below'] },
  },
  'token.reused': {
    meaning:
      'A code or refresh token was used a second time, so it may have been stolen; all tokens of its grant were revoked',
    details: { grant: ['text', 'id of the grant'] },
  },
  'grant.revoked': {
    meaning: 'An app revoked a token, which ended its grant',
    details: { grant: ['text', 'id of the grant'] },
  },
  'key.created': {
    meaning: 'An API key was issued',
    details: { name: ['text', 'name of the key'], scopes: ['texts', 'scopes of the key'] },
  },
  'key.rotated': {
    meaning: 'An API key was replaced',
    details: {
      replaced_by: ['text', 'id of the new key'],
      overlap_seconds: ['number', 'how long both keys are accepted'],
    },
  },
  'key.revoked': {
    meaning: 'An API key was revoked',
    details: { reason: ['text', 'as the admin gave it'] },
  },
  'key.exposed': {
    meaning:
      'An API key was sent by a browser for the first time; `pua keys show` has the origin of the page',
    details: {},
  },
  'calendar_link.created': {
    meaning: 'A member created a link with which calendar programs read their events',
    details: { link: ['number', 'id of the link'] },
  },
  'calendar_link.revoked': {
    meaning: 'A member revoked one or all of their calendar links',
    details: {
      link: ['number', 'id of the link, if it was one'],
      links: ['number', 'how many, if it was all of them'],
    },
  },
  'client.created': {
    meaning: 'An app was registered',
    details: {
      name: ['text', 'name of the app'],
      scopes: ['texts', 'scopes that it may request'],
      redirect_uris: ['texts', 'redirect URIs of the app'],
    },
  },
  'client.updated': {
    meaning: 'The registration of an app was changed',
    details: {
      changed: ['texts', 'the changed columns of `oauth_clients`'],
      redirect_uris: ['texts', 'redirect URIs of the app, if they were changed'],
      scopes: ['texts', 'scopes that it may request, if they were changed'],
      grants: ['number', 'how many grants ended because the app lost scopes that they included'],
    },
  },
  'client.disabled': { meaning: 'An app was disabled', details: {} },
  'client.enabled': { meaning: 'An app was enabled again', details: {} },
  'client.deleted': {
    meaning: 'An app was deleted, which ended all access that members gave it',
    details: { name: ['text', 'name of the app'], grants: ['number', 'how many grants ended'] },
  },
  'signing_key.rotated': {
    meaning: 'The next key now signs ID tokens',
    details: { next: ['text', 'id of the key created to follow it'] },
  },
  'webhook.created': {
    meaning: 'A webhook receiver was registered',
    details: { webhook: ['text', 'its id'], types: ['texts', 'message types that it receives'] },
  },
  'webhook.rotated': {
    meaning: 'A webhook receiver was given a new secret',
    details: {
      webhook: ['text', 'its id'],
      overlap_seconds: ['number', 'how long messages are signed with both secrets'],
    },
  },
  'webhook.disabled': {
    meaning: 'A webhook receiver was disabled: nothing more is sent to it',
    details: {
      webhook: ['text', 'its id'],
      reason: ['text', 'admin, or failing (it accepted nothing for five days)'],
    },
  },
  'platform.imported': {
    meaning: 'An import changed something; one in batches records each of them',
    details: {
      users: ['counts', 'numbers of records of that file, by outcome'],
      events: ['counts', 'likewise'],
      participants: ['counts', 'likewise'],
      connections: ['counts', 'likewise'],
      achievements: ['counts', 'likewise'],
      user_achievements: ['counts', 'likewise'],
    },
  },
  'audit.pruned': {
    meaning: 'An admin started deleting old events by hand',
    details: { older_than_seconds: ['number', 'the requested age'] },
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
    /** The id of a client that exists. */
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
 * Writes SQL that records an event for each row of `source`, as a part of the statement that does what is recorded.
 *
 * @param first number of the first of the parameters that are {@link eventValues}
 */
export function recordEventIf(source: string, first: number): string {
  const types = ['text', 'text', 'bigint', 'text', 'text', 'inet', 'text', 'jsonb'];
  const values = types.map((type, i) => `$${first + i}::${type}`);
  return `INSERT INTO auth_events ${COLUMNS} SELECT ${values.join(', ')} FROM ${source}`;
}

/** Returns an event as the parameters of {@link recordEventIf}. */
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

declare const AUDITED: unique symbol;

/** A transaction in which {@link recordEvent} may write: only {@link audited} gives one. */
export type AuditedTransaction = EntityManager & { readonly [AUDITED]: true };

/**
 * Runs an act together with the audit lines that it records: in one transaction, so that neither is ever without the other.
 *
 * @param database where a transaction is already open, the act becomes a part of it
 */
export function audited<Result>(
  database: DataSource | EntityManager,
  act: (transaction: AuditedTransaction) => Promise<Result>,
): Promise<Result> {
  const run = (manager: EntityManager) => act(manager as AuditedTransaction);
  const manager = 'manager' in database ? database.manager : database;
  return manager.queryRunner?.isTransactionActive === true ? run(manager) : manager.transaction(run);
}

/** Records an event of the act that the transaction runs. */
export async function recordEvent(transaction: AuditedTransaction, event: NewAuthEvent): Promise<void> {
  await transaction.query(RECORD_EVENT, eventValues(event));
}

/** What can be recorded alone, because it is no change of the database: what was refused, sent, or is only beginning. */
export type LoneEvent = Extract<
  NewAuthEvent,
  {
    type:
      | 'sign_in.succeeded'
      | 'sign_in.refused'
      | 'authorization.refused'
      | 'token.refused'
      | 'user.exported'
      | 'user.password_reset_sent'
      | 'audit.pruned';
  }
>;

/** Records what is no act on the database. @param query runs the statement */
export async function recordAlone(
  query: (text: string, values: unknown[]) => Promise<unknown>,
  event: LoneEvent,
): Promise<void> {
  await query(RECORD_EVENT, eventValues(event));
}

/** Of the JSON. PostgreSQL’s form has more spaces, and is at most twice as long: the CHECK allows 2,000. */
const MOST_BYTES = 1_000;
const MOST_ITEMS = 10;

/**
 * Writes details as JSON that the database accepts whatever they contain: recording an event must never fail what it records. Long
 * texts and lists are clipped no more than necessary.
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
