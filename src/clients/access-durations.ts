import type { Client } from 'oidc-provider';
import type { Config } from '../config/config.js';

/** Durations of an app's access, shortest first; numbers are days. */
export const DURATIONS = ['once', '30', '180', 'unlimited'] as const;

export type Duration = (typeof DURATIONS)[number];

const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** `once` covers one minute for the code, and ten minutes for the access token. */
const SECONDS: Readonly<Record<Duration, number | null>> = {
  once: 11 * MINUTE,
  '30': 30 * DAY,
  '180': 180 * DAY,
  unlimited: null,
};

/** Returns the duration in seconds; null for `unlimited`. */
export const secondsOf = (duration: Duration): number | null => SECONDS[duration];

export interface AccessClient {
  /** Whether the client is a web app without authentication, metadata document or DPoP-bound tokens. */
  readonly isPublicBrowser: boolean;
  readonly isUnapproved: boolean;
  readonly longest_access: Duration | null;
}

/** Reads an {@link AccessClient}. @param isBound whether its tokens are bound to a DPoP key */
export function accessClientOf(client: Client, isBound: boolean): AccessClient {
  return {
    isPublicBrowser:
      client.applicationType === 'web' &&
      client.tokenEndpointAuthMethod === 'none' &&
      client.has_document !== true &&
      !isBound,
    isUnapproved: client.by_member === true && client.is_approved !== true,
    longest_access: (client.longest_access as Duration | undefined) ?? null,
  };
}

type Defaults = Pick<Config, 'accessLongest' | 'accessPreselected'>;

/** Returns the number of seconds without use after which access ends. */
export const idleSeconds = ({ isPublicBrowser }: Pick<AccessClient, 'isPublicBrowser'>) =>
  (isPublicBrowser ? 30 : 180) * DAY;

/** Lists the durations that a member can choose for a client, shortest first. */
export function choicesFor(client: AccessClient, { accessLongest }: Defaults): readonly Duration[] {
  const ofKind = accessLongest ?? (client.isPublicBrowser ? '180' : 'unlimited');
  const longest = client.longest_access ?? (client.isUnapproved ? shorterOf(ofKind, '180') : ofKind);
  return DURATIONS.slice(0, DURATIONS.indexOf(longest) + 1);
}

/** Chooses the duration that the consent page suggests. @param earlier the member's previous choice */
export function preselectedFor(
  client: AccessClient,
  defaults: Defaults,
  earlier: Duration | null = null,
): Duration {
  const wanted = earlier ?? defaults.accessPreselected ?? (client.isPublicBrowser ? '30' : '180');
  return shorterOf(wanted, choicesFor(client, defaults).at(-1)!);
}

const shorterOf = (one: Duration, other: Duration) =>
  DURATIONS[Math.min(DURATIONS.indexOf(one), DURATIONS.indexOf(other))]!;
