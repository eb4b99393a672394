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

/** Several hosts, as libpq accepts them, are refused: not everything that reads them here understands them. */
export const SEVERAL_HOSTS =
  'names several hosts: name one that leads to the primary, such as HAProxy, PgBouncer or a name in DNS';

/** The URL of a database. */
const databaseUrl = z.string().superRefine((value, context) => {
  const severalHosts =
    /^postgres(ql)?:\/\/([^/?]*@)?[^/?@]*,[^/?@]*([/?]|$)/.test(value) ||
    /[?&]host=[^&]*(,|%2C)/i.test(value);
  if (severalHosts) {
    context.addIssue(SEVERAL_HOSTS);
  } else if (!/^postgres(ql)?:\/\//.test(value) || !URL.canParse(value)) {
    context.addIssue(
      'must be a URL that starts with postgres:// or postgresql://; leave a password with unusual characters out of it, and set PGPASSWORD',
    );
  }
});

/** Several of them, with spaces or commas between. */
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
    'must be at least 32 random bytes in base64: make one with `npx pua secrets generate`',
  )
  .transform((value) => Buffer.from(value, 'base64'));

/** In seconds; 0 alone needs no unit. */
const duration = (shortest: string, longest: string) =>
  z
    .string()
    .transform((value) => (value === '0' ? 0 : (secondsOf(value) ?? Number.NaN)))
    .refine(
      (seconds) => seconds === 0 || (seconds >= secondsOf(shortest)! && seconds <= secondsOf(longest)!),
      `must be a whole number and s, m, h or d, from ${shortest} to ${longest}, or 0`,
    );

export interface Setting {
  readonly read: z.ZodType;
  /** How the default reads in the documentation. */
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
    '`production` refuses development secrets, the embedded database and a PUBLIC_URL that is not https (localhost apart)',
  ),
  HOST: setting(z.string().min(1), '127.0.0.1 (0.0.0.0 in production)', 'address on which HTTP listens'),
  PORT: setting(integer(0, 65_535), '3000', 'port on which HTTP listens'),
  PUBLIC_URL: setting(
    url('http:', 'https:').refine(
      (value) => URL.canParse(value) && new URL(value).origin === value,
      'must be an origin: scheme, host and port, without a path or a slash at the end',
    ),
    'http://localhost:PORT',
    'origin that callers see; the OAuth issuer',
  ),
  DATA_DIR: setting(
    z.string().min(1),
    '.data',
    'folder of the embedded database, the development secrets and the demo’s test key',
  ),
  DATABASE_URL: setting(
    databaseUrl,
    'embedded',
    'PostgreSQL 15 or newer, postgres://… with one host; the password may stand in PGPASSWORD instead, as it is; without DATABASE_URL the embedded database in DATA_DIR',
  ),
  DATABASE_DIRECT_URL: setting(
    databaseUrl,
    'DATABASE_URL',
    'the same database without a pooler in between: for migrations, notices (LISTEN), shared rate limits, and what runs beside requests',
  ),
  DATABASE_READ_URL: setting(
    databaseUrls,
    '–',
    'streaming replicas of DATABASE_URL, each by a URL of its own that leads to that server and no pooler, with spaces or commas between: members’ lists and profiles are read there ([scaling.md](scaling.md#read-replicas)); the same for all instances',
  ),
  DATABASE_POOL_SIZE: setting(integer(1, 1000), '10', 'database connections per process'),
  SECRET_KEY: setting(
    key,
    'made in development',
    'at least 32 random bytes in base64; the pepper, cursor, cookie and encryption keys are derived from it',
  ),
  SECRET_KEY_PREVIOUS: setting(
    key,
    '–',
    'the SECRET_KEY before this one: verifies and decrypts only, so that a rotation signs nobody out',
  ),
  TRUST_PROXY: setting(integer(0, 100), '0', 'number of proxies in front whose X-Forwarded-For is believed'),
  REDIS_URL: setting(
    url('redis:', 'rediss:'),
    '–',
    'instances share their rate limits here; without it in PostgreSQL',
  ),
  RATE_LIMIT_READ: setting(
    integer(0, 1_000_000),
    '300',
    'reads a minute per user and credential; 0: no limit',
  ),
  RATE_LIMIT_WRITE: setting(
    integer(0, 1_000_000),
    '30',
    'writes a minute per user and credential; 0: no limit',
  ),
  RATE_LIMIT_PLATFORM: setting(
    integer(0, 1_000_000),
    '600',
    'calls a minute of each key of the platform; 0: no limit',
  ),
  RATE_LIMIT_AUTH: setting(
    integer(0, 1_000_000),
    '20',
    'refused credentials, and sign-ins, a minute per address, and a hundred times as many requests to the OAuth routes and pages; 0: no limit',
  ),
  WORKERS: setting(
    z.union([z.literal('auto'), integer(1, 256)], { error: 'must be auto, or a whole number from 1 to 256' }),
    '1',
    'server processes on this machine; `auto`: one for each core',
  ),
  METRICS_PORT: setting(
    integer(1, 65_535),
    '–',
    'port of its own for Prometheus: GET /metrics; without it there is none',
  ),
  SHUTDOWN_DELAY: setting(
    integer(0, 300),
    '0 (5 in production)',
    'seconds for which an ending instance serves on while `/readyz` says 503, so that balancers look elsewhere first',
  ),
  SWEEP_INTERVAL: setting(integer(1, 86_400), '60', 'seconds between sweeps of expired rows'),
  AUDIT_RETENTION: setting(
    duration('7d', '36500d'),
    '400d',
    'age after which audit events are swept: a whole number and s, m, h or d, 7 days at least; 0: never',
  ),
  CHANGES_RETENTION: setting(
    duration('1d', '3650d'),
    '30d',
    'for how long what changed is kept for apps that sync, and what members did for the platform: a whole number and s, m, h or d, a day at least; 0: for ever. Who comes later reads everything anew',
  ),
  CLIENT_ID_METADATA_DOCUMENTS: setting(
    flag,
    'false',
    'apps that nobody registered may name themselves by the https address of a document about them, as clients of the Model Context Protocol do; the server reads it from the internet',
  ),
  UPSTREAM_ISSUER: setting(
    url('https:', 'http:').refine(
      (value) => URL.canParse(value) && new URL(value).search === '' && new URL(value).hash === '',
      'must have neither query nor fragment',
    ),
    '–',
    'the platform’s own login: the issuer of an OpenID provider with which members sign in; without it they have a password here ([sign-in.md](sign-in.md))',
  ),
  UPSTREAM_CLIENT_ID: setting(z.string().min(1), '–', 'what this server is called there'),
  UPSTREAM_CLIENT_SECRET: setting(
    z.string().min(1),
    '–',
    'what this server proves there that it is this client with; or UPSTREAM_CLIENT_KEY_FILE',
  ),
  UPSTREAM_CLIENT_KEY_FILE: setting(
    z.string().min(1),
    '–',
    'file with a private key (PKCS #8, PEM; RSA, P-256, P-384, P-521 or Ed25519) in place of the secret: private_key_jwt',
  ),
  UPSTREAM_SCOPES: setting(
    z
      .string()
      .refine(
        (value) => value.split(' ').includes('openid'),
        'must have openid among them, with spaces between',
      ),
    'openid',
    'scopes that are asked for there, with spaces between',
  ),
  UPSTREAM_LABEL: setting(
    z
      .string()
      .refine(
        (value) => value.trim() !== '' && [...value].length <= 40 && !/[\p{Cc}\p{Cf}]/u.test(value),
        'must have 1 to 40 printable characters',
      ),
    'PLATFORM_NAME, or the host of UPSTREAM_ISSUER',
    'what the sign-in page calls it: “Continue with …”',
  ),
  UPSTREAM_CLAIM: setting(
    z.string().regex(/^[\x21-\x7e]{1,100}$/, 'must be the name of a claim'),
    'sub',
    'claim that says who it is; `email` counts only where `email_verified` is true',
  ),
  UPSTREAM_MATCH: setting(
    z.enum(['external_id', 'id', 'username'], { error: 'must be external_id, id or username' }),
    'external_id',
    'what of a member has to be the same: only what nobody can choose there for themselves keeps members apart',
  ),
  UPSTREAM_CREATE_MEMBERS: setting(
    flag,
    'false',
    'make a member of who signs in there and is none here yet; not with UPSTREAM_MATCH=id',
  ),
  UPSTREAM_LOGOUT: setting(flag, 'false', 'who signs out here is signed out there, too'),
  LOCAL_SIGN_IN: setting(
    flag,
    'true',
    'whether members may sign in with a password here; false needs UPSTREAM_ISSUER, and leads straight there',
  ),
  DEVELOPER_CONSOLE: setting(
    flag,
    'false',
    'members may register apps and make keys of their own on `/developer`, which is not there without it ([developers.md](developers.md))',
  ),
  SUPPORT_URL: setting(
    url('https:', 'http:', 'mailto:'),
    '–',
    'where members ask for help: every page for them leads there, and error pages say which error id to give',
  ),
  SECURITY_CONTACT: setting(
    url('https:', 'mailto:'),
    '–',
    'whom to tell of a weakness of this server: stands in `/.well-known/security.txt` (RFC 9116), which is there with it',
  ),
  PLATFORM_NAME: setting(
    z
      .string()
      .refine(
        (value) => value.trim() !== '' && [...value].length <= 60 && !/[\p{Cc}\p{Cf}]/u.test(value),
        'must have 1 to 60 printable characters',
      ),
    '–',
    'what pages and documents call the platform',
  ),
  PLATFORM_LOGO_URL: setting(
    url('https:', 'http:', 'file:', 'data:'),
    '–',
    'its logo, a PNG, JPEG, WebP, GIF or SVG of 256 KB at most: https, file or data; read at start and served from here, so that members’ pages load nothing from elsewhere',
  ),
  PLATFORM_COLOR: setting(
    z
      .string()
      .refine(
        (value) => /^#[0-9a-f]{6}$/i.test(value) && contrastOf(value, '#ffffff') >= 4.5,
        'must be #rrggbb, and dark enough to be read on white and white on it: a contrast of 4.5 at least (WCAG 2.2, 1.4.3)',
      ),
    '–',
    'of buttons and links on members’ pages, #rrggbb, dark enough to be read on white; the dark pages have a lighter shade of it',
  ),
  PRIVACY_URL: setting(
    url('https:', 'http:'),
    '–',
    'what the platform does with members’ data: every page for them leads there',
  ),
  SIGN_UP_URL: setting(url('https:', 'http:'), '–', 'where the sign-in page leads who has no account'),
  PASSWORD_RESET_URL: setting(
    url('https:', 'http:'),
    '–',
    'where members who forgot their password set a new one: the sign-in page leads there, and `/.well-known/change-password`, which password managers ask for; without it that leads to `/account/security`',
  ),
  SMTP_URL: setting(
    url('smtp:', 'smtps:'),
    '–',
    'mail server by which members who forgot their password are sent a link to set a new one (`smtps://user:password@mail.example`); needs MAIL_FROM',
  ),
  MAIL_FROM: setting(
    z.string().refine(isMailbox, 'must be an address, or a name and an address in <>'),
    '–',
    'from whom those mails are: `Example <no-reply@example.com>`',
  ),
  LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'must be fatal, error, warn, info, debug, trace or silent',
    }),
    'info',
    'least important log line that is written',
  ),
  LOG_FORMAT: setting(
    z.enum(['json', 'pretty'], { error: 'must be json or pretty' }),
    'pretty on a terminal (not in the image), else json',
    'form of the log lines',
  ),
  SQL_REQUEST_IDS: setting(
    flag,
    'false',
    'statements of a request bear its id in a comment, so that PostgreSQL’s log leads to ours; nothing is prepared then, which costs ([monitoring.md](monitoring.md#from-postgresqls-log-to-ours))',
  ),
  SEED_DEMO: setting(
    flag,
    'true in development where PUBLIC_URL and HOST are loopback, false otherwise',
    'fill an empty database with demo members at start; their password is known, so it is refused where others can reach the server',
  ),
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;
