import type { Request } from 'express';
import { addressOf } from '../../values/network.js';

/** The origin of a sign-in. `browser` and `system` are names, such as `Firefox` and `Linux`. */
export interface SignInOrigin {
  readonly ip?: string | undefined;
  readonly browser?: string | undefined;
  readonly system?: string | undefined;
  readonly language?: string | undefined;
}

/** Reads the origin of a request. */
export function signInOriginOf(request: Request): SignInOrigin {
  const { language } = request.context;
  return { ip: addressOf(request), language, ...browserOf(request.headers['user-agent'] ?? null) };
}

/** Browsers in the order of matching, since most browsers' `User-Agent` headers also contain other browsers' names. */
const BROWSERS: readonly [pattern: RegExp, name: string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|Chromium|CriOS|HeadlessChrome)\//, 'Chrome'],
  [/\bVersion\/[\d.]+.*\bSafari\//, 'Safari'],
];

const SYSTEMS: readonly [pattern: RegExp, name: string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'Mac'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

/** Maximum characters to read from a header, since the last pattern of {@link BROWSERS} takes quadratic time. */
const MAX_READ = 300;

/** Reads the names of browser and system from a `User-Agent` header. */
export function browserOf(userAgent: string | null) {
  const said = userAgent?.slice(0, MAX_READ) ?? '';
  const find = (names: readonly [RegExp, string][]) => names.find(([pattern]) => pattern.test(said))?.[1];
  return { browser: find(BROWSERS), system: find(SYSTEMS) };
}
