import type { Client } from 'oidc-provider';
import type { Config } from '../config/config.js';
import type { OauthClient } from '../database/schema/entities/credentials/oauth.entity.js';

/** How long a member can let an app use their data, the shortest first; numbers are days. */
export const DURATIONS = ['once', '30', '180', 'unlimited'] as const;

export type Duration = (typeof DURATIONS)[number];

const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

/** `once`: a code for a minute, then its access token for ten. */
const SECONDS: Readonly<Record<Duration, number | null>> = {
  once: 11 * MINUTE,
  '30': 30 * DAY,
  '180': 180 * DAY,
  unlimited: null,
};

/** Tells how many seconds access of this duration lasts; null for no end. */
export const secondsOf = (duration: Duration): number | null => SECONDS[duration];

/** The properties of a client that decide how long its access may last. */
interface AccessClient {
  /** A page in a browser, which can keep no secret: not an assistant, and its tokens are bound to no key. */
  readonly isPublicBrowser: boolean;
  /** A member registered it. */
  readonly byMember: boolean;
  /** The limit that an admin set. */
  readonly longest_access: Duration | null;
}

/** Reads these properties of a client. @param isBound whether its tokens are bound to a DPoP key */
export function accessClientOf(client: Client, isBound: boolean): AccessClient {
  return {
    isPublicBrowser:
      client.applicationType === 'web' &&
      client.tokenEndpointAuthMethod === 'none' &&
      client.has_document !== true &&
      !isBound,
    byMember: client.by_member === true,
    longest_access: (client.longest_access as Duration | undefined) ?? null,
  };
}

/** The same of a client's row. */
export function accessClientOfRow(
  client: Pick<OauthClient, 'type' | 'longest_access'> & {
    readonly is_public: boolean;
    readonly has_document: boolean;
    readonly by_member: boolean;
    readonly is_bound: boolean;
  },
): AccessClient {
  const { type, is_public, has_document, is_bound, by_member, longest_access } = client;
  return {
    isPublicBrowser: type === 'web' && is_public && !has_document && !is_bound,
    byMember: by_member,
    longest_access,
  };
}

type Defaults = Pick<Config, 'accessLongest' | 'accessPreselected'>;

/** The time without use after which access ends, in seconds. */
export const idleSeconds = ({ isPublicBrowser }: Pick<AccessClient, 'isPublicBrowser'>) =>
  (isPublicBrowser ? 30 : 180) * DAY;

/** What a member can choose for a client, the shortest first. */
export function choicesFor(client: AccessClient, { accessLongest }: Defaults): readonly Duration[] {
  const ofKind = accessLongest ?? (client.isPublicBrowser ? '180' : 'unlimited');
  const longest = client.longest_access ?? (client.byMember ? shorterOf(ofKind, '180') : ofKind);
  return DURATIONS.slice(0, DURATIONS.indexOf(longest) + 1);
}

/** The choice that the consent page suggests. @param earlier what the member chose before */
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
