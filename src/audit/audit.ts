import type { DataSource, EntityManager } from 'typeorm';
import type { AuthEvent } from '../database/schema/entities/credentials/auth-event.entity.js';

/** TypeScript types of details, by their names in docs/operators/audit.md. */
interface DetailTypes {
  text: string;
  texts: readonly string[];
  number: number;
  boolean: boolean;
  counts: Readonly<Record<string, number>>;
}

/** @param details type and meaning of each detail, by name */
const event = <const Details extends Readonly<Record<string, readonly [keyof DetailTypes, string]>> = {}>(
  meaning: string,
  details = {} as Details,
) => ({ meaning, details });

const DEVICE = { browser: ['text', 'such as Firefox'], system: ['text', 'such as Linux'] } as const;
const GRANT = { grant: ['text', 'grant id'] } as const;
const WEBHOOK = { webhook: ['text', 'endpoint id'] } as const;
const TOKEN = { ...GRANT, scope: ['text', 'access token scopes'] } as const;

/** All types of audit events; docs/operators/audit.md lists them. Details must not contain input from anonymous callers. */
export const AUTH_EVENTS = {
  'user.created': event('A member was created, except by imports and feeds'),
  'user.updated': event('An admin changed a member’s account', { changed: ['texts', 'columns of `users`'] }),
  'user.password_set': event('A member or an admin set a new password', {
    sessions_kept: ['boolean', 'whether all sessions continue'],
  }),
  'user.password_reset_sent': event('The server emailed a password reset link'),
  'user.password_switched': event('A member disabled or enabled their password', {
    on: ['boolean', 'whether the password is now accepted'],
  }),
  'user.disabled': event('An admin disabled a member'),
  'user.enabled': event('An admin enabled a member again'),
  'user.exported': event('A member started to download their data export'),
  'user.erased': event('All of a member’s data except the id was erased, including in audit events'),
  'sign_in.succeeded': event('A member signed in', {
    method: ['text', 'password, passkey, or upstream (external identity provider)'],
    ...DEVICE,
    language: ['text', 'page language'],
  }),
  'sign_in.refused': event(
    'A sign-in of an existing member was rejected; during a block, only the first one is recorded',
    {
      method: ['text', 'password, passkey, or upstream'],
      ...DEVICE,
      reason: [
        'text',
        'no_password, disabled, wrong_password, account_blocked, address_blocked, device_blocked, wrong_proof (passkey), counter_went_back (copied passkey?)',
      ],
    },
  ),
  'passkey.added': event('A member added a passkey', {
    passkey: ['number', 'passkey id'],
    synced: ['boolean', 'whether the passkey is synced'],
  }),
  'passkey.removed': event('A member’s passkey was removed', { passkey: ['number', 'passkey id'] }),
  'notice.undelivered': event('The server could not email a notice for three days', {
    notice: ['text', 'reported event'],
    attempts: ['number', 'attempts'],
  }),
  'notice.chosen': event('A member chose which notices the server emails', {
    muted: ['texts', 'events that cause no email'],
  }),
  'session.ended': event('One or more browser sessions of a member ended', {
    session: ['text', 'id prefix, if one ended'],
    sessions: ['number', 'ended sessions, otherwise'],
  }),
  'session.signed_out': event('A member signed out on the account pages'),
  'consent.granted': event('A member granted an app access', {
    granted: ['texts', 'granted scopes'],
    rejected: ['texts', 'rejected scopes'],
    duration: ['text', '`once`, `30`, `180` (days) or `unlimited`'],
  }),
  'consent.denied': event('A member denied an app access', { scopes: ['texts', 'requested scopes'] }),
  'access.changed': event('A member changed how long an app has access', {
    grants: ['number', 'changed grants'],
    duration: ['text', '`30`, `180` (days from the change) or `unlimited`'],
  }),
  'access.revoked': event('The access of one or all apps to a member’s data was revoked', {
    grants: ['number', 'ended grants'],
    sessions: ['number', 'ended sessions, if all access was revoked'],
  }),
  'authorization.refused': event(
    'An endpoint except `/oauth/token` rejected an app’s request about a member. Also, at most hourly per app and reason: wrong origins, wrong or exposed secrets',
    { error: ['text', 'error code (RFC 6749)'], reason: ['text', 'listed below'] },
  ),
  'token.issued': event('An authorization code was exchanged for tokens', TOKEN),
  'token.refreshed': event('A refresh token was used', TOKEN),
  'token.refused': event('The token endpoint rejected an app’s request (see `authorization.refused`)', {
    error: ['text', 'error code (RFC 6749)'],
    reason: ['text', 'listed below'],
  }),
  'token.reused': event('A code or refresh token was used twice; its grant’s tokens were revoked', GRANT),
  'grant.revoked': event('An app revoked a token, which ended its grant', GRANT),
  'key.created': event('An API key was issued', {
    name: ['text', 'key name'],
    scopes: ['texts', 'key scopes'],
  }),
  'key.rotated': event('An API key was replaced', {
    replaced_by: ['text', 'id of the new key'],
    overlap_seconds: ['number', 'maximum validity of the old key'],
  }),
  'key.revoked': event('An API key was revoked', { reason: ['text', 'why'] }),
  'key.ending': event(
    'A member’s key used in the last 7 days expires within 7 days and was not rotated; once per key',
  ),
  'access.ending': event(
    'An app’s access, used in the last 7 days, expires within 7 days; at most once per end',
  ),
  'key.exposed': event(
    'A browser sent this API key for the first time; `pua keys show` shows the page’s origin',
  ),
  'calendar_link.created': event('A member created a calendar link', { link: ['number', 'link id'] }),
  'calendar_link.revoked': event('A member revoked one or all of their calendar links', {
    link: ['number', 'link id, if one was revoked'],
    links: ['number', 'revoked links, if all were revoked'],
  }),
  'client.created': event('An app was registered', {
    name: ['text', 'app name'],
    scopes: ['texts', 'app scopes'],
    redirect_uris: ['texts', 'redirect URIs'],
  }),
  'client.updated': event('The registration of an app was changed', {
    changed: ['texts', 'columns of `oauth_clients`'],
    redirect_uris: ['texts', 'if changed'],
    scopes: ['texts', 'if changed'],
    grants: ['number', 'ended grants'],
    reason: ['text', '`gone` (410 from the logout URL)'],
  }),
  'client.secret_rotated': event('An app got a new secret', {
    overlap_seconds: ['number', 'maximum validity of the old secret'],
  }),
  'client.disabled': event('An admin or the owner disabled an app'),
  'client.enabled': event('An admin or the owner enabled an app again'),
  'client.deleted': event('An admin or the owner deleted an app, with its grants', {
    name: ['text', 'app name'],
    grants: ['number', 'ended grants'],
  }),
  'client.applied': event('A developer applied for a review of their app', {
    scopes: ['texts', 'requested scopes'],
  }),
  'client.reviewed': event('An admin approved or rejected the application of a member’s app', {
    result: ['text', '`approved` or `rejected`'],
    name: ['text', 'approved name'],
    scopes: ['texts', 'approved scopes'],
    redirect_uris: ['texts', 'approved redirect URIs'],
    reason: ['text', 'reason for a rejection'],
  }),
  'tester.invited': event('A developer invited a tester to their app'),
  'tester.accepted': event('A member agreed to test an app'),
  'tester.left': event('A member declined an invitation to test an app, or stopped testing it'),
  'tester.removed': event('A developer removed a tester of their app'),
  'signing_key.rotated': event('The next key now signs ID tokens', {
    next: ['text', 'id of the following key'],
  }),
  'webhook.created': event('A webhook endpoint was registered', {
    ...WEBHOOK,
    types: ['texts', 'message types'],
  }),
  'webhook.rotated': event('A webhook endpoint got a new secret', {
    ...WEBHOOK,
    overlap_seconds: ['number', 'how long both secrets sign'],
  }),
  'webhook.tested': event(
    'A developer sent a test message to a webhook endpoint of their app or key',
    WEBHOOK,
  ),
  'webhook.redelivered': event('The server resends delivered or dead messages to a webhook endpoint', {
    ...WEBHOOK,
    messages: ['number', 'number of messages'],
  }),
  'webhook.disabled': event('A webhook endpoint was disabled', {
    ...WEBHOOK,
    reason: ['text', '`admin` (or its developer), `failing` (for five days) or `gone` (410)'],
  }),
  'webhook.deleted': event(
    'A developer deleted a webhook endpoint of their app or key, with its messages',
    WEBHOOK,
  ),
  'platform.imported': event('An import changed data; one event per batch. Feeds record no such event', {
    users: ['counts', 'by outcome'],
    events: ['counts', 'by outcome'],
    participants: ['counts', 'by outcome'],
    connections: ['counts', 'by outcome'],
    achievements: ['counts', 'by outcome'],
    user_achievements: ['counts', 'by outcome'],
  }),
  'audit.pruned': event('An admin started `pua audit prune`', {
    older_than_seconds: ['number', 'the requested age'],
  }),
};

export type AuthEventType = keyof typeof AUTH_EVENTS;

type DetailsOf<Type extends AuthEventType> = (typeof AUTH_EVENTS)[Type]['details'];

type DetailType<Definition> = Definition extends readonly [infer Type extends keyof DetailTypes, string]
  ? DetailTypes[Type]
  : never;

export type NewAuthEvent = {
  [Type in AuthEventType]: {
    readonly type: Type;
    /** `admin`: the command line. */
    readonly actor: AuthEvent['actor'];
    readonly userId?: number | null;
    /** Id of an existing client. */
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

/** Makes SQL that records an event per row of `source`, as part of a statement. @param first number of the first event value */
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

/** A transaction from {@link audited}, as {@link recordEvent} requires. */
export type AuditedTransaction = EntityManager & { readonly [AUDITED]: true };

/** Runs `act` in the open transaction of `database`, or in a new transaction. A DataSource retries it after a deadlock. */
export function audited<Result>(
  database: DataSource | EntityManager,
  act: (transaction: AuditedTransaction) => Promise<Result>,
): Promise<Result> {
  const run = (manager: EntityManager) => act(manager as AuditedTransaction);
  const isOpen = 'queryRunner' in database && database.queryRunner?.isTransactionActive === true;
  return isOpen ? run(database) : database.transaction(run);
}

/** Records an event in the same transaction as the change. */
export async function recordEvent(transaction: AuditedTransaction, event: NewAuthEvent): Promise<void> {
  await transaction.query(RECORD_EVENT, eventValues(event));
}

/** Events without a database change: sign-ins, rejections, data exports, password reset emails, and starts of pruning. */
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

/** Records an event outside a transaction. @param query runs the statement */
export async function recordAlone(
  query: (text: string, values: unknown[]) => Promise<unknown>,
  event: LoneEvent,
): Promise<void> {
  await query(RECORD_EVENT, eventValues(event));
}

/** Maximum JSON length in bytes: PostgreSQL's form is at most twice as long, and the CHECK allows 2,000. */
const MAX_BYTES = 1_000;
const MAX_ITEMS = 10;

/** Writes details as JSON that the database always accepts, so that recording cannot fail a change. Clips long texts and lists. */
export function boundedDetails(details: object): string {
  for (const longest of [600, 150, 40]) {
    const json = JSON.stringify(details, (_, value: unknown) => clipped(value, longest));
    if (Buffer.byteLength(json) <= MAX_BYTES) return json;
  }
  return '{"clipped":true}';
}

function clipped(value: unknown, longest: number): unknown {
  if (Array.isArray(value) && value.length > MAX_ITEMS) {
    return [...(value.slice(0, MAX_ITEMS - 1) as unknown[]), `and ${value.length - MAX_ITEMS + 1} more`];
  }
  // PostgreSQL writes 1e300 with 301 digits.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : String(value);
  if (typeof value !== 'string') return value;
  const storable = value.replaceAll('\0', '\u{fffd}').toWellFormed();
  return storable.length <= longest ? storable : `${storable.slice(0, longest).toWellFormed()}…`;
}
