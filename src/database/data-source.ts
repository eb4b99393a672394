import type { DataSource } from 'typeorm';
import { CreatePlatform1763700000000 } from '../../migrations/1763700000000-create-platform.js';
import { CreateApiKeys1763700001000 } from '../../migrations/1763700001000-create-api-keys.js';
import { CreateOauth1763700002000 } from '../../migrations/1763700002000-create-oauth.js';
import { CreateLoginThrottle1763700003000 } from '../../migrations/1763700003000-create-login-throttle.js';
import { AnnounceRevocations1763700004000 } from '../../migrations/1763700004000-announce-revocations.js';
import { AnnounceOauthRevocations1763700005000 } from '../../migrations/1763700005000-announce-oauth-revocations.js';
import { CreateRateLimitCounts1763700006000 } from '../../migrations/1763700006000-create-rate-limit-counts.js';
import { EndCredentials1763700007000 } from '../../migrations/1763700007000-end-credentials.js';
import { TellFailuresFromWhatIsUnderWay1763700008000 } from '../../migrations/1763700008000-tell-failures-from-what-is-under-way.js';
import { LeaseRateLimits1763700009000 } from '../../migrations/1763700009000-lease-rate-limits.js';
import { ServeSweeping1763700010000 } from '../../migrations/1763700010000-serve-sweeping.js';
import { BoundAuditTrail1763700011000 } from '../../migrations/1763700011000-bound-audit-trail.js';
import { CopyWhatDecidesAndAppendTotals1763700020000 } from '../../migrations/1763700020000-copy-what-decides-and-append-totals.js';
import { BoundTimesAndPins1763700021000 } from '../../migrations/1763700021000-bound-times-and-pins.js';
import { RememberEditedFields1763700030000 } from '../../migrations/1763700030000-remember-edited-fields.js';
import { MarkChanges1763700031000 } from '../../migrations/1763700031000-mark-changes.js';
import { EraseUsers1763700032000 } from '../../migrations/1763700032000-erase-users.js';
import { ValidateConstraints1763700033000 } from '../../migrations/1763700033000-validate-constraints.js';
import { KnowOwnPasswordHashes1763700040000 } from '../../migrations/1763700040000-know-own-password-hashes.js';
import { KnowInstances1763700050000 } from '../../migrations/1763700050000-know-instances.js';
import { DescribeClients1763700062000 } from '../../migrations/1763700062000-describe-clients.js';
import { KnowClientDocuments1763700063000 } from '../../migrations/1763700063000-know-client-documents.js';
import { RecordChanges1763700070000 } from '../../migrations/1763700070000-record-changes.js';
import { IndexChangesOnce1763700071000 } from '../../migrations/1763700071000-index-changes-once.js';
import { KnowPlatformKeys1763700075000 } from '../../migrations/1763700075000-know-platform-keys.js';
import { KeepRecordVersions1763700076000 } from '../../migrations/1763700076000-keep-record-versions.js';
import { CountUsage1763700077000 } from '../../migrations/1763700077000-count-usage.js';
import { KnowExternalIds1763700080000 } from '../../migrations/1763700080000-know-external-ids.js';
import { KnowUpstreamSessions1763700081000 } from '../../migrations/1763700081000-know-upstream-sessions.js';
import { KnowPasskeys1763700082000 } from '../../migrations/1763700082000-know-passkeys.js';
import { ResetPasswords1763700083000 } from '../../migrations/1763700083000-reset-passwords.js';
import { CreateWebhooks1763700090000 } from '../../migrations/1763700090000-create-webhooks.js';
import { TellPlatform1763700091000 } from '../../migrations/1763700091000-tell-platform.js';
import { MakeCalendarLinks1763700100000 } from '../../migrations/1763700100000-make-calendar-links.js';
import { KnowDevelopers1763700110000 } from '../../migrations/1763700110000-know-developers.js';
import { FoldAsAnyOwner1763700120000 } from '../../migrations/1763700120000-fold-as-any-owner.js';
import { WriteChangesCheaply1763700121000 } from '../../migrations/1763700121000-write-changes-cheaply.js';
import { InlineFunctionsOfLists1763700122000 } from '../../migrations/1763700122000-inline-functions-of-lists.js';
import { EndPasswordResets1763800400000 } from '../../migrations/1763800400000-end-password-resets.js';
import { NarrowGrants1763800500000 } from '../../migrations/1763800500000-narrow-grants.js';
import { NarrowEarlierGrants1763800501000 } from '../../migrations/1763800501000-narrow-earlier-grants.js';
import { SweepRateLimitCounts1763800800000 } from '../../migrations/1763800800000-sweep-rate-limit-counts.js';
import type { Config } from '../config/config.js';
import { BoundedClient, WriteGate } from './bounded-client.js';
import { embeddedAddress } from './embedded-address.js';
import { Achievement, UserAchievement } from './entities/achievement.entity.js';
import { ApiKey, ApiKeyUsage } from './entities/api-key.entity.js';
import { AuthEvent } from './entities/auth-event.entity.js';
import { CalendarLink } from './entities/calendar-link.entity.js';
import { Change, ChangePlace } from './entities/change.entity.js';
import { ChangeMark } from './entities/change-mark.entity.js';
import { CompatibleMigration } from './entities/compatible-migration.entity.js';
import { Connection } from './entities/connection.entity.js';
import { DeveloperRequest } from './entities/developer-request.entity.js';
import { Event, Participant } from './entities/event.entity.js';
import { IdempotentResponse } from './entities/idempotent-response.entity.js';
import {
  OauthClient,
  OauthConsent,
  OauthGrant,
  OauthGrantUsage,
  OauthSession,
  OauthState,
  OauthToken,
  SigningKey,
} from './entities/oauth.entity.js';
import { LoginThrottle } from './entities/login-throttle.entity.js';
import { OauthRefusal } from './entities/oauth-refusal.entity.js';
import { RateLimitCount, RateLimitInstances } from './entities/rate-limit.entity.js';
import { MemberUsage } from './entities/member-usage.entity.js';
import { PlatformChange } from './entities/platform-change.entity.js';
import { RecordVersion } from './entities/record-version.entity.js';
import { RetryingDataSource } from './retrying-data-source.js';
import { RenamedUser } from './entities/renamed-user.entity.js';
import { Passkey } from './entities/passkey.entity.js';
import { PlatformTotals } from './entities/totals.entity.js';
import { User } from './entities/user.entity.js';
import { WebhookDelivery, WebhookEndpoint } from './entities/webhook.entity.js';

const ENTITIES = [
  User,
  PlatformTotals,
  Event,
  Participant,
  ChangeMark,
  Change,
  ChangePlace,
  Connection,
  Achievement,
  UserAchievement,
  ApiKey,
  ApiKeyUsage,
  AuthEvent,
  OauthClient,
  OauthConsent,
  OauthGrant,
  OauthGrantUsage,
  OauthToken,
  OauthSession,
  OauthState,
  SigningKey,
  OauthRefusal,
  Passkey,
  LoginThrottle,
  RateLimitCount,
  RateLimitInstances,
  CompatibleMigration,
  RenamedUser,
  RecordVersion,
  IdempotentResponse,
  MemberUsage,
  WebhookEndpoint,
  WebhookDelivery,
  PlatformChange,
  CalendarLink,
  DeveloperRequest,
];

/** In the order in which they run. */
export const MIGRATIONS = [
  CreatePlatform1763700000000,
  CreateApiKeys1763700001000,
  CreateOauth1763700002000,
  CreateLoginThrottle1763700003000,
  AnnounceRevocations1763700004000,
  AnnounceOauthRevocations1763700005000,
  CreateRateLimitCounts1763700006000,
  EndCredentials1763700007000,
  TellFailuresFromWhatIsUnderWay1763700008000,
  LeaseRateLimits1763700009000,
  ServeSweeping1763700010000,
  BoundAuditTrail1763700011000,
  CopyWhatDecidesAndAppendTotals1763700020000,
  BoundTimesAndPins1763700021000,
  RememberEditedFields1763700030000,
  MarkChanges1763700031000,
  EraseUsers1763700032000,
  ValidateConstraints1763700033000,
  KnowOwnPasswordHashes1763700040000,
  KnowInstances1763700050000,
  DescribeClients1763700062000,
  KnowClientDocuments1763700063000,
  RecordChanges1763700070000,
  IndexChangesOnce1763700071000,
  KnowPlatformKeys1763700075000,
  KeepRecordVersions1763700076000,
  CountUsage1763700077000,
  KnowExternalIds1763700080000,
  KnowUpstreamSessions1763700081000,
  KnowPasskeys1763700082000,
  ResetPasswords1763700083000,
  CreateWebhooks1763700090000,
  TellPlatform1763700091000,
  MakeCalendarLinks1763700100000,
  KnowDevelopers1763700110000,
  FoldAsAnyOwner1763700120000,
  WriteChangesCheaply1763700121000,
  InlineFunctionsOfLists1763700122000,
  EndPasswordResets1763800400000,
  NarrowGrants1763800500000,
  NarrowEarlierGrants1763800501000,
  SweepRateLimitCounts1763800800000,
];

export type DataSourceUse = 'requests' | 'maintenance' | 'sweeping' | 'feeding' | 'telling';

const TELL_STATEMENT_MS = 30_000;
const TELL_LOCK_MS = 3_000;

const SWEEP_STATEMENT_MS = 5_000;
const SWEEP_LOCK_MS = 300;

/** Feeds that a process writes at once; others wait. */
export const FEEDS_AT_ONCE = 2;
const FEED_STATEMENT_MS = 10_000;
/** Longer than the database takes to detect a deadlock. */
const FEED_LOCK_MS = 3_000;

/**
 * Makes a DataSource for one of these uses:
 *
 * - `requests`: a pool whose every wait is bounded by {@link Config.databaseDeadlines};
 * - `maintenance`: two direct connections without deadlines, for migrations, imports and the command line;
 * - `sweeping`: one direct connection, open only while there is work, whose statements may take longer than a request but hardly
 *   wait for locks;
 * - `feeding`: direct connections for what the platform's backend sends, so that it never takes those of members;
 * - `telling`: direct connections for webhooks, open only while there are messages.
 */
export function createDataSource(config: Config, use: DataSourceUse): DataSource {
  return new RetryingDataSource({
    type: 'postgres',
    ...databaseAddress(config, use),
    entities: ENTITIES,
    migrations: MIGRATIONS,
    synchronize: false,
    logging: false,
    parseInt8: true, // ids end at 2^53 − 1, as the schema checks
    applicationName: 'public-user-api',
    invalidWhereValuesBehavior: { null: 'throw', undefined: 'throw' },
    poolErrorHandler: () => undefined, // an idle connection broke: the pool has dropped it already
    extra: poolOptions(config, use),
  });
}

function poolOptions(config: Config, use: DataSourceUse) {
  const { connect, lock, statement } = config.databaseDeadlines;
  switch (use) {
    case 'requests':
      return {
        max: config.databasePoolSize,
        connectionTimeoutMillis: connect,
        lock_timeout: lock,
        statement_timeout: statement,
        idle_in_transaction_session_timeout: 5_000,
        keepAlive: true,
        ...requestPlans(config),
        // Longer than the server's own limit, which expires first unless the server is gone or a COMMIT waits for a standby.
        ...bounds(config, statement + 50, isDirect(config)),
      };
    case 'sweeping':
      return {
        max: 1,
        idleTimeoutMillis: 1_000,
        connectionTimeoutMillis: 5_000,
        lock_timeout: SWEEP_LOCK_MS,
        statement_timeout: SWEEP_STATEMENT_MS,
        keepAlive: true,
        // What a crash undoes is swept again; and a lost synchronous standby does not block sweeping.
        options: '-c synchronous_commit=off',
        ...bounds(config, SWEEP_STATEMENT_MS + 1_000, true),
      };
    case 'feeding':
      return {
        max: FEEDS_AT_ONCE,
        idleTimeoutMillis: 10_000,
        connectionTimeoutMillis: 5_000,
        lock_timeout: FEED_LOCK_MS,
        statement_timeout: FEED_STATEMENT_MS,
        idle_in_transaction_session_timeout: FEED_STATEMENT_MS,
        keepAlive: true,
        ...requestPlans(config),
        ...bounds(config, FEED_STATEMENT_MS + 50, true),
      };
    case 'telling':
      return {
        max: 2,
        idleTimeoutMillis: 10_000,
        connectionTimeoutMillis: 5_000,
        lock_timeout: TELL_LOCK_MS,
        statement_timeout: TELL_STATEMENT_MS,
        idle_in_transaction_session_timeout: 5_000,
        keepAlive: true,
        ...requestPlans(config),
        ...bounds(config, TELL_STATEMENT_MS + 50, true),
      };
    case 'maintenance':
      return { max: 2, connectionTimeoutMillis: 5_000, ...bounds(config, undefined, false) };
  }
}

/**
 * A request uses one PostgreSQL process and no JIT: parallel workers and JIT gain nothing on short statements, and would let one
 * caller's list take all cores. Poolers and the embedded database do not accept these options; docs/scaling.md sets them for the
 * role.
 */
function requestPlans(config: Config): { options?: string } {
  return isDirect(config) ? { options: '-c max_parallel_workers_per_gather=0 -c jit=off' } : {};
}

/**
 * Whether requests connect to PostgreSQL directly, each connection with its own session: behind a pooler each transaction gets
 * another one, and the embedded database has one for all.
 */
export function isDirect({ databaseUrl, databaseDirectUrl }: Config): boolean {
  return databaseUrl !== undefined && databaseUrl === databaseDirectUrl;
}

interface DatabaseAddress {
  readonly url?: string;
  readonly host?: string;
  readonly port?: number;
  readonly username?: string;
  readonly password?: string;
  readonly database?: string;
}

/** The database's address as TypeORM options: a URL, or the embedded database's socket. */
export function databaseAddress(config: Config, use: DataSourceUse): DatabaseAddress {
  const url = use === 'requests' ? config.databaseUrl : config.databaseDirectUrl;
  if (url) return { url };
  return { ...embeddedAddress(config.dataDir), username: 'postgres', password: '', database: 'postgres' };
}

function bounds({ databaseUrl }: Config, answerMs: number | undefined, primary: boolean) {
  if (databaseUrl) return { Client: BoundedClient, answerMs, writes: new WriteGate(), primary };
  return { query_timeout: answerMs }; // the embedded one accepts no CancelRequest, and has no standby
}
