import { isIP, isIPv6 } from 'node:net';
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { parseSeconds } from '../config/setting-types.js';
import {
  isName,
  isUsername,
  NAME_RULE,
  USERNAME_RULE,
  isEmailAddress,
  isHttpUrl,
  isStorable,
} from '../values/string-rules.js';
import { isId, LENGTHS, type Length } from '../values/vocabulary.js';
import { namedKeyId } from '../auth/api-keys/api-key-format.js';
import { ALL_PLATFORM_SCOPES, ALL_SCOPES, type PlatformScope, type Scope } from '../auth/scopes.js';

/** Reads a duration: a whole number and s, m, h or d. @returns seconds @throws InvalidArgumentError */
export function parseDuration(text: string): number {
  const seconds = parseSeconds(text);
  if (seconds === undefined)
    throw new InvalidArgumentError('It must be a whole number followed by s, m, h or d, such as 90d.');
  return seconds;
}

/** Makes a reader of durations between two inclusive bounds, such as `1d`. */
export const durationBetween = (shortest: string, longest: string) => (text: string) => {
  const seconds = parseDuration(text);
  if (seconds < parseDuration(shortest) || seconds > parseDuration(longest))
    throw new InvalidArgumentError(`It must be from ${shortest} to ${longest}.`);
  return seconds;
};

/** Makes the option for how long a replaced secret stays in use. @param what completes the sentence "how long …" */
export const overlapOption = (what: string, longest: string) =>
  new Option('--overlap <duration>', `how long ${what}`)
    .argParser(durationBetween('0s', longest))
    .default(parseDuration('24h'), '24h');

/** Reads scopes that are separated by commas, without platform scopes; an empty text means none. */
export const parseScopes = (text: string): Scope[] => scopesAmong(ALL_SCOPES, text);

/** Reads scopes that are separated by commas, including platform scopes. */
export const parseKeyScopes = (text: string): (Scope | PlatformScope)[] =>
  scopesAmong([...ALL_SCOPES, ...ALL_PLATFORM_SCOPES], text);

function scopesAmong<Known extends string>(known: readonly Known[], text: string): Known[] {
  const names = text.split(',').flatMap((name) => name.trim() || []);
  const unknown = names.find((name) => !known.some((scope) => scope === name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no scope ${unknown}. The scopes are: ${known.join(', ')}.`);
  return known.filter((scope) => names.includes(scope));
}

/** Appends a network or address in CIDR notation. IPv4 inside IPv6 (`::ffff:…`) becomes IPv4. @throws InvalidArgumentError */
export function collectCidr(text: string, before: readonly string[] = []): string[] {
  const [address = '', bits, ...rest] = text.split('/');
  const longest = isIPv6(address) ? 128 : 32;
  const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0 || !(prefix <= longest)) {
    throw new InvalidArgumentError(
      'It must be a network such as 203.0.113.0/24 or 2001:db8::/32, or a single address.',
    );
  }
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return [...before, mapped && prefix >= 96 ? `${mapped[1]}/${prefix - 96}` : `${address}/${prefix}`];
}

/** Makes a reader of texts whose length, in code points, is within these bounds. */
export const textArgument =
  ([shortest, longest]: Length) =>
  (text: string): string => {
    const { length } = [...text];
    if (length < shortest || length > longest || !isStorable(text))
      throw new InvalidArgumentError(`It must have ${shortest} to ${longest} characters, but has ${length}.`);
    return text;
  };

const textThat = (isRight: (text: string) => boolean, must: string) => (text: string) => {
  if (!isRight(text)) throw new InvalidArgumentError(`It must ${must}.`);
  return text;
};

/** Reads the name of an app or key. @throws InvalidArgumentError */
export const parseName = (text: string) => textThat(isName, NAME_RULE)(textArgument([1, 100])(text));

/** Reads a username. @throws InvalidArgumentError */
export const parseUsername = (text: string) =>
  textThat(isUsername, USERNAME_RULE)(textArgument(LENGTHS.users.username)(text));

/** Reads an email address. @throws InvalidArgumentError */
export const parseEmail = textThat(isEmailAddress, 'be an email address');

/** Reads the id of an API key, also from a whole key. Shortens other long words, so that no message shows a secret. */
export const parseKeyId = (text: string) =>
  namedKeyId(text) ?? text.replace(/[0-9A-Za-z]{13,}.*/s, (rest) => `${rest.slice(0, 12)}…`);

/** Reads the id of a passkey or member. @throws InvalidArgumentError */
export const parseNumber = (text: string) =>
  Number(textThat((id) => /^[1-9]\d{0,15}$/.test(id) && isId(Number(id)), 'be a whole number')(text));

/** Reads an absolute http or https URL. @throws InvalidArgumentError */
export const parseHttpUrl = (text: string) =>
  textArgument(LENGTHS.users.profile_picture)(textThat(isHttpUrl, 'be an absolute http or https URL')(text));
