import { z } from 'zod';
import { contrastOf } from '../values/colors.js';
import { isMailbox } from '../values/string-rules.js';
import { secondsOf } from './duration.js';

/**
 * Every setting of the process: name → how it is read, and what it means. This list is the only one:
 * `.env.example` and `docs/settings.md` are compared with it by a test.
 */
const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`);

const url = (...protocols: string[]) =>
  z.string().refine(
    (value) => {
      return URL.canParse(value) && protocols.includes(new URL(value).protocol);
    },
    `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
  );

/** Several hosts, as libpq accepts them, are refused: not every part of the server that reads the URL understands them. */
export const SEVERAL_HOSTS =
  'names several hosts: name one that leads to the primary, such as HAProxy, PgBouncer or a DNS name';

/** The URL of a database. */
const databaseUrl = z.string().superRefine((value, context) => {
  const severalHosts =
    /^postgres(ql)?:\/\/([^/?]*@)?[^/?@]*,[^/?@]*([/?]|$)/.test(value) ||
    /[?&]host=[^&]*(,|%2C)/i.test(value);
  if (severalHosts) {
    context.addIssue(SEVERAL_HOSTS);
  } else if (!/^postgres(ql)?:\/\//.test(value) || !URL.canParse(value)) {
    context.addIssue(
      'must be a URL that starts with postgres:// or postgresql://; if the password contains unusual characters, leave it out and set PGPASSWORD',
    );
  }
});

/** Several URLs of databases, separated by spaces or commas. */
const databaseUrls = z
  .string()
  .transform((value) => value.split(/[\s,]+/).filter(Boolean))
  .pipe(z.array(databaseUrl).min(1, 'must name at least one database'));

const flag = z
  .enum(['true', 'false'], { error: 'must be true or false' })
  .transform((value) => value === 'true');

const key = z
  .string()
  .refine(
    (value) => /^[A-Za-z0-9+/_-]+={0,2}$/.test(value) && Buffer.from(value, 'base64').length >= 32,
    'must be at least 32 random bytes in base64: generate one with `npx pua secrets generate`',
  )
  .transform((value) => Buffer.from(value, 'base64'));

/** In seconds; 0 alone needs no unit. */
const duration = (shortest: string, longest: string) =>
  z
    .string()
    .transform((value) => (value === '0' ? 0 : (secondsOf(value) ?? Number.NaN)))
    .refine(
      (seconds) => seconds === 0 || (seconds >= secondsOf(shortest)! && seconds <= secondsOf(longest)!),
      `must be a whole number followed by s, m, h or d, from ${shortest} to ${longest}, or 0`,
    );

export interface Setting {
  readonly read: z.ZodType;
  /** The default as the documentation states it. */
  readonly default: string;
  readonly meaning: string;
}

const setting = <T extends z.ZodType>(read: T, fallback: string, meaning: string) => ({
  read: read.optional() as z.ZodOptional<T>,
  default: fallback,
  meaning,
});

export const SETTINGS = {
  NODE_ENV: setting(
    z.enum(['development', 'test', 'production'], { error: 'must be development, test or production' }),
    'development',
    '`production` refuses development secrets, the embedded database, and a PUBLIC_URL that is not https (except on localhost)',
  ),
  HOST: setting(
    z.string().min(1),
    '127.0.0.1 (0.0.0.0 in production)',
    'address that the HTTP server listens on',
  ),
  PORT: setting(integer(0, 65_535), '3000', 'port that the HTTP server listens on'),
  PUBLIC_URL: setting(
    url('http:', 'https:').refine(
      (value) => URL.canParse(value) && new URL(value).origin === value,
      'must be an origin: scheme, host and port, without a path or a slash at the end',
    ),
    'http://localhost:PORT',
    'origin at which callers reach the server; also the OAuth issuer',
  ),
  DATA_DIR: setting(
    z.string().min(1),
    '.data',
    'folder for the embedded database, the development secrets and the demo’s test key',
  ),
  DATABASE_URL: setting(
    databaseUrl,
    'embedded',
    'PostgreSQL 15 or newer: postgres://… with a single host; the password may be in PGPASSWORD instead, unencoded. Without DATABASE_URL, the embedded database in DATA_DIR is used',
  ),
  DATABASE_DIRECT_URL: setting(
    databaseUrl,
    'DATABASE_URL',
    'the same database without a connection pooler in between: for migrations, notifications (LISTEN), shared rate limits, and background work',
  ),
  DATABASE_READ_URL: setting(
    databaseUrls,
    '–',
    'streaming replicas of DATABASE_URL: one URL for each, separated by spaces or commas, that leads to that server without a pooler in between. Members’ lists and profiles are read there ([scaling.md](scaling.md#read-replicas)). Must be the same on all instances',
  ),
  DATABASE_POOL_SIZE: setting(integer(1, 1000), '10', 'database connections per process'),
  SECRET_KEY: setting(
    key,
    'generated in development',
    'at least 32 random bytes in base64; the pepper and the cursor, cookie and encryption keys are derived from it',
  ),
  SECRET_KEY_PREVIOUS: setting(
    key,
    '–',
    'the previous SECRET_KEY: used only to verify and decrypt, so that a rotation signs nobody out',
  ),
  TRUST_PROXY: setting(
    integer(0, 100),
    '0',
    'number of trusted proxies in front, whose X-Forwarded-For is believed',
  ),
  REDIS_URL: setting(
    url('redis:', 'rediss:'),
    '–',
    'Redis server through which instances share their rate limits; without it, they share them through PostgreSQL',
  ),
  RATE_LIMIT_READ: setting(
    integer(0, 1_000_000),
    '300',
    'reads per minute for each user and credential; 0: no limit',
  ),
  RATE_LIMIT_WRITE: setting(
    integer(0, 1_000_000),
    '30',
    'writes per minute for each user and credential; 0: no limit',
  ),
  RATE_LIMIT_PLATFORM: setting(
    integer(0, 1_000_000),
    '600',
    'calls per minute for each platform key; 0: no limit',
  ),
  RATE_LIMIT_AUTH: setting(
    integer(0, 1_000_000),
    '20',
    'refused credentials, and sign-ins, per minute for each address; a hundred times as many requests to the OAuth routes and pages; 0: no limit',
  ),
  RATE_LIMIT_SYNC: setting(
    integer(10, 500),
    '200',
    'shortest time between two exchanges of counts with the other instances, in milliseconds; longer costs less, but more calls get past a limit',
  ),
  WORKERS: setting(
    z.union([z.literal('auto'), integer(1, 256)], { error: 'must be auto, or a whole number from 1 to 256' }),
    '1',
    'number of server processes on this machine; `auto`: one per core',
  ),
  METRICS_PORT: setting(
    integer(1, 65_535),
    '–',
    'separate port for Prometheus (GET /metrics); without it, metrics are not served',
  ),
  SHUTDOWN_DELAY: setting(
    integer(0, 300),
    '0 (5 in production)',
    'seconds for which an instance that is shutting down keeps serving while `/readyz` responds 503, so that load balancers stop sending it requests first',
  ),
  SWEEP_INTERVAL: setting(integer(1, 86_400), '60', 'seconds between sweeps of expired rows'),
  AUDIT_RETENTION: setting(
    duration('7d', '36500d'),
    '400d',
    'age after which audit events are swept: a whole number followed by s, m, h or d, at least 7 days; 0: never',
  ),
  CHANGES_RETENTION: setting(
    duration('1d', '3650d'),
    '30d',
    'how long the record of changes is kept, for apps that sync and for the platform: a whole number followed by s, m, h or d, at least a day; 0: for ever. Whoever falls further behind has to read everything again',
  ),
  CLIENT_ID_METADATA_DOCUMENTS: setting(
    flag,
    'false',
    'accept apps that are not registered but identify themselves by the https URL of a client metadata document, as clients of the Model Context Protocol do; the server fetches it from the internet',
  ),
  UPSTREAM_ISSUER: setting(
    url('https:', 'http:').refine(
      (value) => URL.canParse(value) && new URL(value).search === '' && new URL(value).hash === '',
      'must have neither query nor fragment',
    ),
    '–',
    'the platform’s own login: issuer of the OpenID provider with which members sign in; without it, they have a password here ([sign-in.md](sign-in.md))',
  ),
  UPSTREAM_CLIENT_ID: setting(z.string().min(1), '–', 'client id of this server at that provider'),
  UPSTREAM_CLIENT_SECRET: setting(
    z.string().min(1),
    '–',
    'client secret of this server at that provider; UPSTREAM_CLIENT_KEY_FILE is the alternative',
  ),
  UPSTREAM_CLIENT_KEY_FILE: setting(
    z.string().min(1),
    '–',
    'file with a private key (PKCS #8, PEM; RSA, P-256, P-384, P-521 or Ed25519) for private_key_jwt, in place of the secret',
  ),
  UPSTREAM_SCOPES: setting(
    z
      .string()
      .refine(
        (value) => value.split(' ').includes('openid'),
        'must include openid, and have spaces between the scopes',
      ),
    'openid',
    'scopes to request from that provider, separated by spaces',
  ),
  UPSTREAM_LABEL: setting(
    z
      .string()
      .refine(
        (value) => value.trim() !== '' && [...value].length <= 40 && !/[\p{Cc}\p{Cf}]/u.test(value),
        'must have 1 to 40 printable characters',
      ),
    'PLATFORM_NAME, or the host of UPSTREAM_ISSUER',
    'name of that provider on the sign-in page: “Continue with …”',
  ),
  UPSTREAM_CLAIM: setting(
    z.string().regex(/^[\x21-\x7e]{1,100}$/, 'must be the name of a claim'),
    'sub',
    'claim that identifies the member; `email` counts only if `email_verified` is true',
  ),
  UPSTREAM_MATCH: setting(
    z.enum(['external_id', 'id', 'username'], { error: 'must be external_id, id or username' }),
    'external_id',
    'field of the member that the claim has to equal. Members are safe from each other only if nobody can choose the value of the claim at that provider',
  ),
  UPSTREAM_CREATE_MEMBERS: setting(
    flag,
    'false',
    'create a member for anyone who signs in there and does not exist here yet; not with UPSTREAM_MATCH=id',
  ),
  UPSTREAM_LOGOUT: setting(flag, 'false', 'signing out here signs the member out at that provider, too'),
  LOCAL_SIGN_IN: setting(
    flag,
    'true',
    'whether members may sign in with a password here; false requires UPSTREAM_ISSUER, and sends them straight to that provider',
  ),
  DEVELOPER_CONSOLE: setting(
    flag,
    'false',
    'let members register apps and create API keys at `/developer`, which does not exist otherwise ([developers.md](developers.md))',
  ),
  SUPPORT_URL: setting(
    url('https:', 'http:', 'mailto:'),
    '–',
    'where members get help: every page for members links to it, and error pages name the error id to quote',
  ),
  SECURITY_CONTACT: setting(
    url('https:', 'mailto:'),
    '–',
    'where to report a vulnerability: published in `/.well-known/security.txt` (RFC 9116), which does not exist otherwise',
  ),
  PLATFORM_NAME: setting(
    z
      .string()
      .refine(
        (value) => value.trim() !== '' && [...value].length <= 60 && !/[\p{Cc}\p{Cf}]/u.test(value),
        'must have 1 to 60 printable characters',
      ),
    '–',
    'name of the platform on pages and in documents',
  ),
  PLATFORM_LOGO_URL: setting(
    url('https:', 'http:', 'file:', 'data:'),
    '–',
    'logo of the platform: URL (https, file or data) of a PNG, JPEG, WebP, GIF or SVG of at most 256 KB. It is read at start and served from here, so that members’ pages load nothing from elsewhere',
  ),
  PLATFORM_COLOR: setting(
    z
      .string()
      .refine(
        (value) => /^#[0-9a-f]{6}$/i.test(value) && contrastOf(value, '#ffffff') >= 4.5,
        'must be #rrggbb, and dark enough for a contrast with white of at least 4.5 (WCAG 2.2, 1.4.3)',
      ),
    '–',
    'color of buttons and links on members’ pages: #rrggbb, dark enough to be read on white. Dark mode uses a lighter shade of it',
  ),
  PRIVACY_URL: setting(
    url('https:', 'http:'),
    '–',
    'privacy policy of the platform: every page for members links to it',
  ),
  SIGN_UP_URL: setting(
    url('https:', 'http:'),
    '–',
    'where people without an account can sign up: the sign-in page links to it',
  ),
  PASSWORD_RESET_URL: setting(
    url('https:', 'http:'),
    '–',
    'where members who forgot their password set a new one: the sign-in page links to it, and `/.well-known/change-password`, which password managers request, redirects to it (to `/account/security` otherwise)',
  ),
  SMTP_URL: setting(
    url('smtp:', 'smtps:'),
    '–',
    'mail server through which members who forgot their password are sent a link to set a new one (`smtps://user:password@mail.example`); requires MAIL_FROM',
  ),
  MAIL_FROM: setting(
    z.string().refine(isMailbox, 'must be an address, or a name and an address in <>'),
    '–',
    'sender of those mails: `Example <no-reply@example.com>`',
  ),
  LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'must be fatal, error, warn, info, debug, trace or silent',
    }),
    'info',
    'least severe level that is logged',
  ),
  LOG_FORMAT: setting(
    z.enum(['json', 'pretty'], { error: 'must be json or pretty' }),
    'pretty on a terminal (not in the image), otherwise json',
    'format of log lines',
  ),
  SQL_REQUEST_IDS: setting(
    flag,
    'false',
    'put the id of the request into a comment of each of its SQL statements, so that PostgreSQL’s log leads to ours. Nothing is prepared then, which costs CPU ([monitoring.md](monitoring.md#from-postgresqls-log-to-ours))',
  ),
  SEED_DEMO: setting(
    flag,
    'true in development where PUBLIC_URL and HOST are loopback, false otherwise',
    'fill an empty database with demo members at start; their password is public, so this is refused where others can reach the server',
  ),
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;
