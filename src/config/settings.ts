import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import * as is from './setting-types.js';

interface Setting {
  readonly read: z.ZodType;
  /** Default in the format of an environment variable. */
  readonly default?: string;
  /** Describes a default that is not a fixed value, for the documentation. */
  readonly otherwise?: string;
  readonly meaning: string;
  /** Completes the sentence "Set it …" in the documentation. */
  readonly set: string;
}

type Texts = Omit<Setting, 'read' | 'default'>;

const setting = <Type extends z.ZodType>(read: Type, value: string, texts: Texts) => ({
  read: read.prefault(value as never),
  default: value,
  ...texts,
});

const optional = <Type extends z.ZodType>(read: Type, texts: Texts) => ({ read: read.optional(), ...texts });

/** All settings: {@link Config} reads their values, and `npm run docs` documents them. */
export const SETTINGS = {
  NODE_ENV: setting(is.oneOf('development', 'test', 'production'), 'development', {
    meaning:
      '`production` rejects development secrets, the embedded database, and a PUBLIC_URL without https (except on localhost); ' +
      '`test` waits longer for the database',
    set: 'to `production` if other hosts can reach the server',
  }),
  HOST: optional(is.nonEmpty, {
    otherwise: '127.0.0.1 (0.0.0.0 in production)',
    meaning: 'address that the HTTP server listens on',
    set: 'to the address of one network interface, or to 127.0.0.1 behind a proxy on the same host',
  }),
  PORT: setting(is.integer(0, 65_535), '3000', {
    meaning: 'port that the HTTP server listens on',
    set: 'if the port is in use, or the proxy expects another port',
  }),
  PUBLIC_URL: optional(is.origin, {
    otherwise: 'http://localhost:PORT',
    meaning: 'origin at which callers reach the server; also the OAuth issuer',
    set: 'if other hosts can reach the server; later changes break apps, passkeys and links that use the old URL',
  }),
  DATA_DIR: setting(
    is.nonEmpty.transform((folder) => resolve(folder)),
    '.data',
    {
      meaning: 'folder for the embedded database, the development secrets and the demo’s test key',
      set: 'to use several development databases, or if the working directory is read-only',
    },
  ),
  DATABASE_URL: optional(is.databaseUrl, {
    otherwise: 'embedded',
    meaning:
      'URL of PostgreSQL 15 or later, with one host; PGPASSWORD can hold the password. Without DATABASE_URL, the server uses the embedded database in DATA_DIR',
    set: 'in production (required)',
  }),
  DATABASE_DIRECT_URL: optional(is.databaseUrl, {
    otherwise: 'DATABASE_URL',
    meaning:
      'URL of the same database without a pooler, for migrations, notifications (LISTEN), rate limits and background work',
    set: 'if DATABASE_URL points to a pooler in transaction mode, such as PgBouncer',
  }),
  DATABASE_READ_URL: optional(is.databaseUrls, {
    meaning:
      'URLs of streaming replicas for members’ lists and profiles, separated by spaces or commas, without a pooler ([scaling.md](scaling.md#read-replicas)); the same on all instances',
    set: 'if reads keep the primary’s processors busy',
  }),
  DATABASE_POOL_SIZE: setting(is.integer(1, 1000), '10', {
    meaning: 'database connections per process for requests',
    set: 'lower if all processes together exceed max_connections; higher if requests wait (`database_pool_connections`)',
  }),
  SECRET_KEY: optional(is.secretKey, {
    otherwise: 'generated in development',
    meaning:
      'at least 32 random bytes in base64, from which the server derives its pepper and its cursor, cookie and encryption keys',
    set: 'in production (required), the same on all instances; change it after a leak',
  }),
  SECRET_KEY_PREVIOUS: optional(is.secretKey, {
    meaning:
      'the previous (or next) SECRET_KEY, used only to verify and decrypt, so that members stay signed in during a key change',
    set: 'while you change SECRET_KEY ([operations.md](operations.md#changing-secret_key))',
  }),
  TRUST_PROXY: setting(is.integer(0, 100), '0', {
    meaning: 'number of proxies in front of the server whose X-Forwarded-For it trusts',
    set: 'if the server is behind proxies; otherwise all callers share one address and one limit',
  }),
  RATE_LIMIT_READ: setting(is.integer(0, 1_000_000), '300', {
    meaning: 'reads per minute for each member and credential; 0: no limit',
    set: 'if legitimate apps reach it, or the database needs more protection',
  }),
  RATE_LIMIT_WRITE: setting(is.integer(0, 1_000_000), '30', {
    meaning: 'writes per minute for each member and credential; 0: no limit',
    set: 'if legitimate apps reach it, or the database needs more protection',
  }),
  RATE_LIMIT_PLATFORM: setting(is.integer(0, 1_000_000), '600', {
    meaning: 'requests per minute for each platform key; 0: no limit',
    set: 'if the platform’s backend sends more requests',
  }),
  RATE_LIMIT_AUTH: setting(is.integer(0, 1_000_000), '20', {
    meaning:
      'rejected credentials and failed sign-ins per minute and address; OAuth routes and pages allow 100 times as many requests; 0: no limit',
    set: 'higher if many members share an address, as in an office',
  }),
  RATE_LIMIT_SYNC: setting(is.integer(10, 500), '200', {
    meaning:
      'minimum milliseconds between exchanges of counts with other instances; a longer interval costs less but admits more requests above a limit',
    set: 'higher with many instances on one database; lower if limits must be more exact',
  }),
  WORKERS: setting(
    z.union([z.literal('auto').transform(() => availableParallelism()), is.integer(1, 256)], {
      error: 'must be auto, or a whole number from 1 to 256',
    }),
    '1',
    {
      meaning: 'number of server processes on this host; `auto`: one per core',
      set: 'to use several cores; prefer more instances if a service manager restarts them',
    },
  ),
  METRICS_PORT: optional(is.integer(1, 65_535), {
    meaning: 'separate port for Prometheus (GET /metrics); without it, the server publishes no metrics',
    set: 'to get alerts ([monitoring.md](monitoring.md))',
  }),
  SHUTDOWN_DELAY: optional(is.integer(0, 300), {
    otherwise: '0 (5 in production)',
    meaning:
      'seconds for which a stopping instance continues to serve while `/readyz` returns 503, so that load balancers stop using it',
    set: 'to more than the load balancer needs to notice the 503; to 0 without a load balancer',
  }),
  SWEEP_INTERVAL: setting(is.integer(1, 86_400), '60', {
    meaning: 'seconds between sweeps of expired rows',
    set: 'lower if `sweeper_overdue_seconds` keeps growing',
  }),
  AUDIT_RETENTION: setting(is.duration('7d', '36500d'), '400d', {
    meaning:
      'age after which the sweeper deletes audit events: a number with s, m, h or d, at least 7d; 0: never',
    set: 'to the time that your rules on personal data and evidence require',
  }),
  CHANGES_RETENTION: setting(is.duration('1d', '3650d'), '30d', {
    meaning:
      'how long to keep changes for sync and the platform: a number with s, m, h or d, at least 1d; 0: forever',
    set: 'lower if the table `changes` is too large; higher if apps pause longer between syncs',
  }),
  ASSISTANTS: optional(is.flag, {
    otherwise: 'true in development, false in production',
    meaning:
      'serve the API to AI assistants through the Model Context Protocol at `/api/public/mcp` ([assistants.md](../developers/assistants.md))',
    set: 'in production, if members may use assistants with their data',
  }),
  CLIENT_ID_METADATA_DOCUMENTS: optional(is.flag, {
    otherwise: 'the value of ASSISTANTS',
    meaning:
      'accept unregistered apps that identify themselves by the https URL of a client metadata document, which the server fetches',
    set: 'if members may use apps that you have not reviewed',
  }),
  UPSTREAM_ISSUER: optional(is.issuer, {
    meaning:
      'issuer of the external identity provider (OpenID Connect); without it, members sign in only at this server ([sign-in.md](sign-in.md))',
    set: 'if members already have accounts at an identity provider',
  }),
  UPSTREAM_CLIENT_ID: optional(is.nonEmpty, {
    meaning: 'client id of this server at UPSTREAM_ISSUER',
    set: 'with UPSTREAM_ISSUER (required)',
  }),
  UPSTREAM_CLIENT_SECRET: optional(is.nonEmpty, {
    meaning: 'client secret of this server at UPSTREAM_ISSUER; the alternative is UPSTREAM_CLIENT_KEY_FILE',
    set: 'with UPSTREAM_ISSUER, if the provider issued a secret',
  }),
  UPSTREAM_CLIENT_KEY_FILE: optional(is.nonEmpty, {
    meaning:
      'file with a private key (PKCS #8, PEM; RSA, P-256, P-384, P-521 or Ed25519) for private_key_jwt, instead of the secret',
    set: 'with UPSTREAM_ISSUER, if the provider accepts signed assertions',
  }),
  UPSTREAM_SCOPES: setting(is.openIdScopes, 'openid', {
    meaning: 'scopes to request from UPSTREAM_ISSUER, separated by spaces',
    set: 'if UPSTREAM_CLAIM or new members’ names require more scopes, such as `profile` or `email`',
  }),
  UPSTREAM_LABEL: optional(is.name(40), {
    otherwise: 'PLATFORM_NAME, or the host of UPSTREAM_ISSUER',
    meaning: 'name of the identity provider on the sign-in page: “Continue with …”',
    set: 'if members know the provider by another name',
  }),
  UPSTREAM_CLAIM: setting(is.claim, 'sub', {
    meaning: 'claim that identifies the member; `email` counts only if `email_verified` is true',
    set: 'if a claim other than `sub` identifies members',
  }),
  UPSTREAM_MATCH: setting(is.oneOf('external_id', 'id', 'username'), 'external_id', {
    meaning:
      'member field that must equal the claim, including case. This is safe only if people cannot choose the claim’s value at the provider',
    set: 'if the claim contains the member’s id or username on this server',
  }),
  UPSTREAM_CREATE_MEMBERS: setting(is.flag, 'false', {
    meaning:
      'create a member for each new person who signs in at UPSTREAM_ISSUER; not with UPSTREAM_MATCH=id',
    set: 'if no import or feed creates the members first',
  }),
  UPSTREAM_LOGOUT: setting(is.flag, 'false', {
    meaning: 'when members who signed in at UPSTREAM_ISSUER sign out here, also sign them out there',
    set: 'if members share devices',
  }),
  LOCAL_SIGN_IN: setting(is.flag, 'true', {
    meaning:
      'whether members can sign in with a password or passkey here; false requires UPSTREAM_ISSUER and redirects members directly to it',
    set: 'to false once all members use the external provider',
  }),
  DEVELOPER_CONSOLE: setting(is.console, 'off', {
    meaning:
      'whether members can [register apps](admin.md#let-members-register-apps) and create keys at `/developer`; `reviewed`: other members can use approved apps; `open` (or `true`): without approval',
    set: 'if members may build on the API without asking an admin',
  }),
  ACCESS_LONGEST: optional(is.oneOf('once', '30', '180', 'unlimited'), {
    otherwise: '180 for public apps in a browser, unlimited for others',
    meaning:
      'longest access that members can give an app: `once`, `30`, `180` (days) or `unlimited`; unapproved apps: at most 180; `pua clients update` overrides it',
    set: 'to limit all apps',
  }),
  ACCESS_PRESELECTED: optional(is.oneOf('once', '30', '180', 'unlimited'), {
    otherwise: '30 for public apps in a browser, 180 for others',
    meaning:
      'duration that the consent page first suggests: `once`, `30`, `180` (days) or `unlimited`, up to the app’s longest access',
    set: 'to suggest a shorter or longer access',
  }),
  DEVELOPER_OIDC: setting(is.flag, 'false', {
    meaning:
      'let members give their apps the profile `oidc`, and thus client secrets, at `/developer` ([oauth.md](../developers/oauth.md#profiles))',
    set: 'if members build apps whose libraries need a client secret',
  }),
  SUPPORT_URL: optional(is.url('https:', 'http:', 'mailto:'), {
    meaning: 'where members get help: a link on every member page and next to error ids',
    set: 'in production',
  }),
  SECURITY_CONTACT: optional(is.url('https:', 'mailto:'), {
    meaning:
      'where to report a vulnerability, published in `/.well-known/security.txt` (RFC 9116); without it, that file does not exist',
    set: 'in production',
  }),
  PLATFORM_NAME: optional(is.name(60), {
    meaning: 'name of the platform on pages and in documents',
    set: 'in production, so that members know where they sign in',
  }),
  PLATFORM_LOGO_URL: optional(is.url('https:', 'http:', 'file:', 'data:'), {
    meaning:
      'URL (https, http, file or data) of the platform’s logo: PNG, JPEG, WebP, GIF or SVG, at most 256 KB; read at startup',
    set: 'if members know the platform by its logo',
  }),
  PLATFORM_COLOR: optional(is.color, {
    meaning:
      'color of buttons and links on members’ pages: #rrggbb, dark enough to read on white. Dark mode uses a lighter shade',
    set: 'if members know the platform by its color',
  }),
  PRIVACY_URL: optional(is.url('https:', 'http:'), {
    meaning: 'privacy policy of the platform: a link on every member page',
    set: 'in production',
  }),
  SIGN_UP_URL: optional(is.url('https:', 'http:'), {
    meaning: 'sign-up page of the platform: a link on the sign-in page',
    set: 'if people can sign up themselves',
  }),
  PASSWORD_RESET_URL: optional(is.url('https:', 'http:'), {
    meaning:
      'your page to set a new password: the sign-in page links to it, and `/.well-known/change-password` redirects to it (otherwise to `/account/security`)',
    set: 'if the platform has such a page; otherwise set SMTP_URL',
  }),
  SMTP_URL: optional(is.url('smtp:', 'smtps:'), {
    meaning:
      'mail server for notices to members and password reset links (`smtps://user:password@mail.example`); requires MAIL_FROM',
    set: 'to email members',
  }),
  MAIL_FROM: optional(is.mailbox, {
    meaning: 'sender of the server’s emails: `Example <no-reply@example.com>`',
    set: 'with SMTP_URL (required)',
  }),
  LOG_LEVEL: setting(is.oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', {
    meaning: 'lowest level to log',
    set: 'to `warn` if a proxy already logs requests; to `debug` to investigate a fault',
  }),
  LOG_FORMAT: optional(is.oneOf('json', 'pretty'), {
    otherwise: 'pretty on a terminal if pino-pretty is installed, otherwise json',
    meaning: 'format of log lines',
    set: 'to `json` to test log processing on a terminal',
  }),
  SQL_REQUEST_IDS: setting(is.flag, 'false', {
    meaning:
      'append the request id to each SQL statement of a request as a comment. Statements are then not prepared, which costs CPU ([monitoring.md](monitoring.md#from-postgresqls-log-to-ours))',
    set: 'while you investigate which requests run slow statements',
  }),
  SEED_DEMO: optional(is.flag, {
    otherwise: 'true in development if PUBLIC_URL and HOST are loopback, otherwise false',
    meaning:
      'fill an empty database with demo members, whose password is public; true requires loopback PUBLIC_URL and HOST',
    set: 'to false to start with an empty database',
  }),
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

export type Environment = { readonly [Name in SettingName]: z.infer<(typeof SETTINGS)[Name]['read']> };

/** Returns the default as the documentation shows it. */
export const defaultOf = ({ default: value, otherwise = '–' }: Setting): string => value ?? otherwise;

/** Removed settings of earlier versions, each with the remedy. */
export const REMOVED_SETTINGS = {
  REDIS_URL: 'remove it, because instances share their rate limits through PostgreSQL',
};
