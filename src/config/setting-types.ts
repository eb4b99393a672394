import { z } from 'zod';
import { contrastOf } from '../values/colors.js';
import { isName, isMailbox } from '../values/string-rules.js';

/** Schemas that parse settings. Their errors never contain the value, which may be a secret. */

export const nonEmpty = z.string().min(1);

/** Accepts one of these words. */
export const oneOf = <const Values extends readonly [string, string, ...string[]]>(...values: Values) =>
  z.enum(values, { error: `must be ${values.slice(0, -1).join(', ')} or ${values.at(-1)}` });

export const flag = oneOf('true', 'false').transform((value) => value === 'true');

/** Also accepts `true` and `false`, the values of earlier versions. */
export const console = oneOf('off', 'reviewed', 'open', 'true', 'false').transform((value) =>
  value === 'true' ? 'open' : value === 'false' ? 'off' : value,
);

/** Accepts a whole number within inclusive bounds. */
export const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`);

/** Accepts an absolute URL with one of these protocols. */
export const url = (...protocols: string[]) =>
  z
    .string()
    .refine(
      (value) => URL.canParse(value) && protocols.includes(new URL(value).protocol),
      `must be a URL that starts with ${protocols.join(' or ')}`,
    );

export const origin = url('http:', 'https:').refine(
  (value) => URL.canParse(value) && new URL(value).origin === value,
  'must be an origin: scheme, host and port, without a path or a slash at the end',
);

export const issuer = url('https:', 'http:').refine(
  (value) => URL.canParse(value) && new URL(value).search === '' && new URL(value).hash === '',
  'must have neither query nor fragment',
);

/** libpq accepts several hosts, but this server does not. */
export const SEVERAL_HOSTS =
  'must name one host: the primary, or an HAProxy, PgBouncer or DNS name that points to the primary';

export const databaseUrl = z
  .string()
  .superRefine((value, context) => {
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
  })
  // pg treats these modes as verify-full, and warns of it each time, unless the URL asks for libpq's meaning.
  .transform((value) =>
    /[?&]uselibpqcompat=true(&|$)/.test(value)
      ? value
      : value.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full'),
  );

/** Accepts URLs separated by spaces or commas. */
export const databaseUrls = z
  .string()
  .transform((value) => value.split(/[\s,]+/).filter(Boolean))
  .pipe(z.array(databaseUrl).min(1, 'must name at least one database'));

export const secretKey = z
  .string()
  .refine(
    (value) => /^[A-Za-z0-9+/_-]+={0,2}$/.test(value) && Buffer.from(value, 'base64').length >= 32,
    'must be at least 32 random bytes in base64: generate one with `pua secrets generate` or `openssl rand -base64 32`',
  )
  .transform((value) => Buffer.from(value, 'base64'));

const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** Reads a duration: a whole number followed by s, m, h or d, such as `90d`. @returns seconds; undefined if it is malformed */
export function parseSeconds(text: string): number | undefined {
  const match = /^(\d{1,9})([smhd])$/.exec(text);
  return match ? Number(match[1]) * UNITS[match[2] as keyof typeof UNITS] : undefined;
}

/** Accepts 0, or a duration from `shortest` to `longest`, and converts it to seconds. */
export const duration = (shortest: string, longest: string) =>
  z
    .string()
    .transform((value) => (value === '0' ? 0 : (parseSeconds(value) ?? Number.NaN)))
    .refine(
      (seconds) => seconds === 0 || (seconds >= parseSeconds(shortest)! && seconds <= parseSeconds(longest)!),
      `must be a whole number followed by s, m, h or d, from ${shortest} to ${longest}, or 0`,
    );

/** Accepts a name of 1 to `longest` printable characters. */
export const name = (longest: number) =>
  z.string().refine((value) => isName(value, longest), `must have 1 to ${longest} printable characters`);

export const mailbox = z.string().refine(isMailbox, 'must be an address, or a name and an address in <>');

export const claim = z.string().regex(/^[\x21-\x7e]{1,100}$/, 'must be the name of a claim');

export const openIdScopes = z
  .string()
  .refine(
    (value) => value.split(' ').includes('openid'),
    'must include openid, and separate the scopes with spaces',
  );

/** Accepts a color that is readable on white. */
export const color = z
  .string()
  .refine(
    (value) => /^#[0-9a-f]{6}$/i.test(value) && contrastOf(value, '#ffffff') >= 4.5,
    'must be #rrggbb, and dark enough for a contrast with white of at least 4.5 (WCAG 2.2, 1.4.3)',
  );
