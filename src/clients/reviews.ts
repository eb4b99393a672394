import type { OauthClient } from '../database/schema/entities/credentials/oauth.entity.js';
import { asShown, isName } from '../values/string-rules.js';
import { isPageUrl, originOf } from './client-rules.js';

/** The columns of an approved app that change only with another approval; redirect URIs if a host is added, scopes if one is. */
const REVIEWED = ['name', 'logo', 'redirect_uris', 'scopes'] as const satisfies (keyof OauthClient)[];

/** A change of one of these columns ends the pending application. */
export const APPLIED_FOR = [...REVIEWED, 'policy_uri'] as const satisfies (keyof OauthClient)[];

type ReviewedColumns = Pick<OauthClient, (typeof REVIEWED)[number]>;

/** The result of an app's last review, or that it waits for one. */
export type ReviewState = 'none' | 'pending' | 'approved' | 'rejected';

/** SQL: the {@link ReviewState} of the client `c`. */
export const REVIEW_STATE = `CASE WHEN c.applied_at IS NOT NULL THEN 'pending' WHEN c.rejection IS NOT NULL THEN 'rejected'
    WHEN c.approved_at IS NOT NULL THEN 'approved' ELSE 'none' END`;

/** What a developer writes when they apply for a review. */
export interface Application {
  readonly purpose: string;
  readonly policy_uri: string;
  /** By scope. */
  readonly reasons: Readonly<Record<string, string>>;
}

export const LONGEST_PURPOSE = 1_000;
export const LONGEST_REASON = 300;

/** Finds the field of an application that is missing or too long. */
export function applicationFault(
  { purpose, policy_uri, reasons }: Application,
  scopes: readonly string[],
): 'purpose' | 'policy_uri' | 'reasons' | undefined {
  if (!isName(purpose, LONGEST_PURPOSE)) return 'purpose';
  if (!isPageUrl(policy_uri)) return 'policy_uri';
  return scopes.every((scope) => isName(reasons[scope] ?? '', LONGEST_REASON)) ? undefined : 'reasons';
}

/** Makes an application of what was typed. */
export const applicationOf = (purpose: string, policy_uri: string, reasons: Record<string, string>) => ({
  purpose: asShown(purpose),
  policy_uri,
  reasons: Object.fromEntries(Object.entries(reasons).map(([scope, reason]) => [scope, asShown(reason)])),
});

/** Gives an app as its owner wants it: with the changes that wait for an approval. */
export function wantedClient(client: OauthClient): OauthClient {
  const { logo, ...others } = client.pending_changes ?? {};
  return {
    ...client,
    ...others,
    ...(logo === undefined ? {} : { logo: logo === null ? null : Buffer.from(logo, 'base64') }),
  };
}

/** Finds the changes of an approved app that need another approval; null if none does. */
export function changesToReview(
  approved: ReviewedColumns,
  wanted: ReviewedColumns,
): OauthClient['pending_changes'] {
  const { name, redirect_uris, scopes } = wanted;
  const hosts = approved.redirect_uris.map(originOf);
  const logoOf = ({ logo }: ReviewedColumns) => logo?.toString('base64') ?? null;
  // In the order in which jsonb returns them.
  const changes = {
    ...(logoOf(wanted) === logoOf(approved) ? {} : { logo: logoOf(wanted) }),
    ...(name === approved.name ? {} : { name }),
    ...(scopes.every((scope) => approved.scopes.includes(scope)) ? {} : { scopes }),
    ...(redirect_uris.every((uri) => hosts.includes(originOf(uri))) ? {} : { redirect_uris }),
  };
  return Object.keys(changes).length === 0 ? null : changes;
}
