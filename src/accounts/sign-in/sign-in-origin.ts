import type { Request } from 'express';
import { addressOf } from '../../values/network.js';

/** Where a sign-in comes from. Browser and system are names of ours: what the browser sent is not kept. */
export interface SignInOrigin {
  readonly ip?: string | undefined;
  readonly browser?: string | undefined;
  readonly system?: string | undefined;
  /** Of the page. */
  readonly language?: string | undefined;
}

/** Gives where a request comes from. */
export function signInOriginOf(request: Request): SignInOrigin {
  const { language } = request.context;
  return { ip: addressOf(request), language, ...browserOf(request.headers['user-agent'] ?? null) };
}

/** The order matters: most browsers also name others. */
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

/** Of a header that a stranger sends, as much as a session keeps: the last pattern of {@link BROWSERS} takes the square of its length. */
const MOST_READ = 300;

/** Gives the browser and system that a `User-Agent` names: `Firefox`, `Linux`. */
export function browserOf(userAgent: string | null) {
  const said = userAgent?.slice(0, MOST_READ) ?? '';
  const find = (names: readonly [RegExp, string][]) => names.find(([pattern]) => pattern.test(said))?.[1];
  return { browser: find(BROWSERS), system: find(SYSTEMS) };
}
