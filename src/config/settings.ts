import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import * as is from './setting-types.js';

interface Setting {
  readonly read: z.ZodType;
  /** As it would stand in the environment. */
  readonly default?: string;
  /** How the documentation states a default that is not always the same. */
  readonly otherwise?: string;
  readonly meaning: string;
  /** In which case to set it: ends the sentence "Set it …". */
  readonly set: string;
}

type Texts = Omit<Setting, 'read' | 'default'>;

/** A setting that always has a value. */
const setting = <Type extends z.ZodType>(read: Type, value: string, texts: Texts) => ({
  read: read.prefault(value as never),
  default: value,
  ...texts,
});

/** A setting that is undefined where nobody sets it. */
const optional = <Type extends z.ZodType>(read: Type, texts: Texts) => ({ read: read.optional(), ...texts });

/**
 * Every setting of the process, and the only list of them: {@link Config} has a property of each, and `.env.example` and
 * `docs/operators/settings.md` are made from it.
 */
export const SETTINGS = {
  NODE_ENV: setting(is.oneOf('development', 'test', 'production'), 'development', {
    meaning:
      '`production` refuses development secrets, the embedded database, and a PUBLIC_URL that is not https (except on localhost)',
    set: 'to `production` wherever others reach the server',
  }),
  HOST: optional(is.text, {
    otherwise: '127.0.0.1 (0.0.0.0 in production)',
    meaning: 'address that the HTTP server listens on',
    set: 'to listen on one network of several, or to 127.0.0.1 behind a proxy on the same machine',
  }),
  PORT: setting(is.integer(0, 65_535), '3000', {
    meaning: 'port that the HTTP server listens on',
    set: 'if the port is taken, or the proxy expects another',
  }),
  PUBLIC_URL: optional(is.origin, {
    otherwise: 'http://localhost:PORT',
    meaning: 'origin at which callers reach the server; also the OAuth issuer',
    set: 'wherever others reach the server; later changes invalidate what was issued under the old one',
  }),
  DATA_DIR: setting(
    is.text.transform((folder) => resolve(folder)),
    '.data',
    {
      meaning: 'folder for the embedded database, the development secrets and the demo’s test key',
      set: 'to keep several development databases apart, or where the working directory is read-only',
    },
  ),
  DATABASE_URL: optional(is.databaseUrl, {
    otherwise: 'embedded',
    meaning:
      'PostgreSQL 15 or newer: postgres://… with a single host; the password may be in PGPASSWORD instead, unencoded. Without DATABASE_URL, the embedded database in DATA_DIR is used',
    set: 'in production, which requires it',
  }),
  DATABASE_DIRECT_URL: optional(is.databaseUrl, {
    otherwise: 'DATABASE_URL',
    meaning:
      'the same database without a connection pooler in between: for migrations, notifications (LISTEN), shared rate limits, and background work',
    set: 'if DATABASE_URL leads to a pooler in transaction mode, such as PgBouncer',
  }),
  DATABASE_READ_URL: optional(is.databaseUrls, {
    meaning:
      'streaming replicas of DATABASE_URL: one URL for each, separated by spaces or commas, that leads to that server without a pooler in between. Members’ lists and profiles are read there ([scaling.md](scaling.md#read-replicas)). Must be the same on all instances',
    set: 'if the primary’s processors are busy with reads',
  }),
  DATABASE_POOL_SIZE: setting(is.integer(1, 1000), '10', {
    meaning: 'database connections per process, for requests',
    set: 'lower if all processes together would exceed PostgreSQL’s max_connections; higher if requests wait for one (`database_pool_connections`)',
  }),
  SECRET_KEY: optional(is.secretKey, {
    otherwise: 'generated in development',
    meaning:
      'at least 32 random bytes in base64; the pepper and the cursor, cookie and encryption keys are derived from it',
    set: 'in production, which requires it, the same on all instances; and to a new one if it may be known to others',
  }),
  SECRET_KEY_PREVIOUS: optional(is.secretKey, {
    meaning: 'the previous SECRET_KEY: used only to verify and decrypt, so that a rotation signs nobody out',
    set: 'while SECRET_KEY is being changed ([operations.md](operations.md))',
  }),
  TRUST_PROXY: setting(is.integer(0, 100), '0', {
    meaning: 'number of trusted proxies in front, whose X-Forwarded-For is believed',
    set: 'behind proxies: without it all callers share one address, and one limit',
  }),
  REDIS_URL: optional(is.url('redis:', 'rediss:'), {
    meaning:
      'Redis server through which instances share their rate limits; without it, they share them through PostgreSQL',
    set: 'if there is one anyway, and the database should be spared the exchange of counts',
  }),
  RATE_LIMIT_READ: setting(is.integer(0, 1_000_000), '300', {
    meaning: 'reads per minute for each user and credential; 0: no limit',
    set: 'if honest apps reach it, or the database needs more protection',
  }),
  RATE_LIMIT_WRITE: setting(is.integer(0, 1_000_000), '30', {
    meaning: 'writes per minute for each user and credential; 0: no limit',
    set: 'if honest apps reach it, or the database needs more protection',
  }),
  RATE_LIMIT_PLATFORM: setting(is.integer(0, 1_000_000), '600', {
    meaning: 'calls per minute for each platform key; 0: no limit',
    set: 'if the platform’s own programs feed or read more often',
  }),
  RATE_LIMIT_AUTH: setting(is.integer(0, 1_000_000), '20', {
    meaning:
      'refused credentials, and sign-ins, per minute for each address; a hundred times as many requests to the OAuth routes and pages; 0: no limit',
    set: 'higher if many members share an address, as in an office',
  }),
  RATE_LIMIT_SYNC: setting(is.integer(10, 500), '200', {
    meaning:
      'shortest time between two exchanges of counts with the other instances, in milliseconds; longer costs less, but more calls get past a limit',
    set: 'higher with many instances on one database; lower where limits must be more exact',
  }),
  WORKERS: setting(
    z.union([z.literal('auto').transform(() => availableParallelism()), is.integer(1, 256)], {
      error: 'must be auto, or a whole number from 1 to 256',
    }),
    '1',
    {
      meaning: 'number of server processes on this machine; `auto`: one per core',
      set: 'where one instance is to use several cores; rather start more instances where something else restarts them',
    },
  ),
  METRICS_PORT: optional(is.integer(1, 65_535), {
    meaning: 'separate port for Prometheus (GET /metrics); without it, metrics are not served',
    set: 'wherever somebody is to be alerted ([monitoring.md](monitoring.md))',
  }),
  SHUTDOWN_DELAY: optional(is.integer(0, 300), {
    otherwise: '0 (5 in production)',
    meaning:
      'seconds for which an instance that is shutting down keeps serving while `/readyz` responds 503, so that load balancers stop sending it requests first',
    set: 'to more than the load balancer takes to notice; to 0 without one',
  }),
  SWEEP_INTERVAL: setting(is.integer(1, 86_400), '60', {
    meaning: 'seconds between sweeps of expired rows',
    set: 'lower if `sweeper_overdue_seconds` keeps growing',
  }),
  AUDIT_RETENTION: setting(is.duration('7d', '36500d'), '400d', {
    meaning:
      'age after which audit events are swept: a whole number followed by s, m, h or d, at least 7 days; 0: never',
    set: 'to what your rules on personal data and evidence demand',
  }),
  CHANGES_RETENTION: setting(is.duration('1d', '3650d'), '30d', {
    meaning:
      'how long the record of changes is kept, for apps that sync and for the platform: a whole number followed by s, m, h or d, at least a day; 0: for ever. Whoever falls further behind has to read everything again',
    set: 'lower if the table `changes` takes too much room; higher if apps stay away for longer',
  }),
  ASSISTANTS: optional(is.flag, {
    otherwise: 'true in development, false in production',
    meaning:
      'serve the API to assistants such as Claude and ChatGPT, too: the Model Context Protocol at `/api/public/mcp` ([assistants.md](../developers/assistants.md))',
    set: 'in production, if members may open their data to the assistants that they use',
  }),
  CLIENT_ID_METADATA_DOCUMENTS: optional(is.flag, {
    otherwise: 'as ASSISTANTS',
    meaning:
      'accept apps that are not registered but identify themselves by the https URL of a client metadata document, as clients of the Model Context Protocol do; the server fetches it from the internet',
    set: 'if members may use apps that nobody here has looked at',
  }),
  UPSTREAM_ISSUER: optional(is.issuer, {
    meaning:
      'the platform’s own login: issuer of the OpenID provider with which members sign in; without it, they have a password here ([sign-in.md](sign-in.md))',
    set: 'if members have a login elsewhere already',
  }),
  UPSTREAM_CLIENT_ID: optional(is.text, {
    meaning: 'client id of this server at that provider',
    set: 'with UPSTREAM_ISSUER, which requires it',
  }),
  UPSTREAM_CLIENT_SECRET: optional(is.text, {
    meaning: 'client secret of this server at that provider; UPSTREAM_CLIENT_KEY_FILE is the alternative',
    set: 'with UPSTREAM_ISSUER, if the provider gave a secret',
  }),
  UPSTREAM_CLIENT_KEY_FILE: optional(is.text, {
    meaning:
      'file with a private key (PKCS #8, PEM; RSA, P-256, P-384, P-521 or Ed25519) for private_key_jwt, in place of the secret',
    set: 'with UPSTREAM_ISSUER, if the provider accepts signed assertions',
  }),
  UPSTREAM_SCOPES: setting(is.openIdScopes, 'openid', {
    meaning: 'scopes to request from that provider, separated by spaces',
    set: 'if UPSTREAM_CLAIM, or the name of new members, needs another, such as `profile` or `email`',
  }),
  UPSTREAM_LABEL: optional(is.name(40), {
    otherwise: 'PLATFORM_NAME, or the host of UPSTREAM_ISSUER',
    meaning: 'name of that provider on the sign-in page: “Continue with …”',
    set: 'if members know their login by another name than the platform’s',
  }),
  UPSTREAM_CLAIM: setting(is.claim, 'sub', {
    meaning: 'claim that identifies the member; `email` counts only if `email_verified` is true',
    set: 'if the platform knows its members by something else than the provider’s `sub`',
  }),
  UPSTREAM_MATCH: setting(is.oneOf('external_id', 'id', 'username'), 'external_id', {
    meaning:
      'field of the member that the claim has to equal, a username also in upper and lower case. Members are safe from each other only if nobody can choose the value of the claim at that provider',
    set: 'if the provider’s claim has the id or the username of the member here',
  }),
  UPSTREAM_CREATE_MEMBERS: setting(is.flag, 'false', {
    meaning:
      'create a member for anyone who signs in there and does not exist here yet; not with UPSTREAM_MATCH=id',
    set: 'if members do not come by an import or a feed first',
  }),
  UPSTREAM_LOGOUT: setting(is.flag, 'false', {
    meaning: 'signing out here signs the member out at that provider, too',
    set: 'if members share devices',
  }),
  LOCAL_SIGN_IN: setting(is.flag, 'true', {
    meaning:
      'whether members may sign in with a password here; false requires UPSTREAM_ISSUER, and sends them straight to that provider',
    set: 'to false once all members sign in with the platform’s own login',
  }),
  DEVELOPER_CONSOLE: setting(is.flag, 'false', {
    meaning:
      'let members register apps and create API keys at `/developer`, which does not exist otherwise ([admin.md](admin.md#let-members-register-apps))',
    set: 'if members may build on the API without asking an administrator',
  }),
  DEVELOPER_OIDC: setting(is.flag, 'false', {
    meaning:
      'let members give their apps the profile `oidc` at `/developer`, and with it client secrets ([oauth.md](../developers/oauth.md#profiles))',
    set: 'if members build apps whose libraries cannot sign',
  }),
  SUPPORT_URL: optional(is.url('https:', 'http:', 'mailto:'), {
    meaning:
      'where members get help: every page for members links to it, and error pages name the error id to quote',
    set: 'in production',
  }),
  SECURITY_CONTACT: optional(is.url('https:', 'mailto:'), {
    meaning:
      'where to report a vulnerability: published in `/.well-known/security.txt` (RFC 9116), which does not exist otherwise',
    set: 'in production',
  }),
  PLATFORM_NAME: optional(is.name(60), {
    meaning: 'name of the platform on pages and in documents',
    set: 'in production: members are to know where they sign in',
  }),
  PLATFORM_LOGO_URL: optional(is.url('https:', 'http:', 'file:', 'data:'), {
    meaning:
      'logo of the platform: URL (https, file or data) of a PNG, JPEG, WebP, GIF or SVG of at most 256 KB. It is read at start and served from here, so that members’ pages load nothing from elsewhere',
    set: 'if members know the platform by its logo',
  }),
  PLATFORM_COLOR: optional(is.color, {
    meaning:
      'color of buttons and links on members’ pages: #rrggbb, dark enough to be read on white. Dark mode uses a lighter shade of it',
    set: 'if members know the platform by its color',
  }),
  PRIVACY_URL: optional(is.url('https:', 'http:'), {
    meaning: 'privacy policy of the platform: every page for members links to it',
    set: 'in production',
  }),
  SIGN_UP_URL: optional(is.url('https:', 'http:'), {
    meaning: 'where people without an account can sign up: the sign-in page links to it',
    set: 'if people can sign up by themselves',
  }),
  PASSWORD_RESET_URL: optional(is.url('https:', 'http:'), {
    meaning:
      'where members who forgot their password set a new one: the sign-in page links to it, and `/.well-known/change-password`, which password managers request, redirects to it (to `/account/security` otherwise)',
    set: 'if the platform has such a page; otherwise SMTP_URL',
  }),
  SMTP_URL: optional(is.url('smtp:', 'smtps:'), {
    meaning:
      'mail server through which members who forgot their password are sent a link to set a new one (`smtps://user:password@mail.example`); requires MAIL_FROM',
    set: 'if members have passwords here, and no PASSWORD_RESET_URL',
  }),
  MAIL_FROM: optional(is.mailbox, {
    meaning: 'sender of those mails: `Example <no-reply@example.com>`',
    set: 'with SMTP_URL, which requires it',
  }),
  LOG_LEVEL: setting(is.oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', {
    meaning: 'least severe level that is logged',
    set: 'to `warn` if a proxy logs requests already; to `debug` to look for a fault',
  }),
  LOG_FORMAT: optional(is.oneOf('json', 'pretty'), {
    otherwise: 'pretty on a terminal (not in the image), otherwise json',
    meaning: 'format of log lines',
    set: 'to `json` to try out on a terminal what reads the log',
  }),
  SQL_REQUEST_IDS: setting(is.flag, 'false', {
    meaning:
      'put the id of the request into a comment of each of its SQL statements, so that PostgreSQL’s log leads to ours. Nothing is prepared then, which costs CPU ([monitoring.md](monitoring.md#from-postgresqls-log-to-ours))',
    set: 'while you look for the requests behind slow statements',
  }),
  SEED_DEMO: optional(is.flag, {
    otherwise: 'true in development where PUBLIC_URL and HOST are loopback, false otherwise',
    meaning:
      'fill an empty database with demo members at start; their password is public, so this is refused where others can reach the server',
    set: 'to false to begin with an empty database',
  }),
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

/** What was read of the environment. */
export type Environment = { readonly [Name in SettingName]: z.infer<(typeof SETTINGS)[Name]['read']> };

/** How the documentation states the default. */
export const defaultOf = ({ default: value, otherwise = '–' }: Setting): string => value ?? otherwise;
