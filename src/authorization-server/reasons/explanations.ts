import type { errors, KoaContextWithOIDC } from 'oidc-provider';
import { accessClientOf, idleSeconds } from '../../clients/access-durations.js';
import type { EndedRefreshToken } from '../../database/schema/entities/credentials/oauth.entity.js';
import type { RejectionReason, RejectionWords } from './rejection-reasons.js';

const USED = 'the refresh token was used before: sign the member in again';
/** The same text for unknown tokens and tokens of other clients, so that clients cannot distinguish them. */
const ENDED = 'the refresh token is no longer valid, or belongs to another client: sign the member in again';
const OF_REFRESH_TOKENS: { readonly [Reason in RejectionReason]?: string } = {
  refresh_token_used: USED,
  token_used_meanwhile: USED,
  refresh_token_not_found: ENDED,
  other_client: ENDED,
  access_ended: ENDED,
};

export interface EndedAccess extends Pick<EndedRefreshToken, 'client_id' | 'reason'> {
  /** Time in the API's format. */
  readonly ended_at: string;
}

const REASONS = {
  member: 'ended by the member',
  app: 'ended by the app',
  platform: 'ended by the platform',
  expired: 'expired',
} as const;

function explainEnd(ctx: KoaContextWithOIDC, { ended_at, reason }: EndedAccess): string {
  const isBound = ctx.get('DPoP') !== '';
  const days = () => idleSeconds(accessClientOf(ctx.oidc.client!, isBound)) / 86_400;
  const why = reason === 'unused' ? `not used for ${days()} days` : REASONS[reason];
  return `the access ended at ${ended_at} UTC: ${why}`;
}

/** Explains faults of the client's document or profile, and of refresh tokens. @returns {} for other errors */
export function explain(
  ctx: KoaContextWithOIDC,
  { error, reason }: RejectionWords,
  failure: Error,
  documentFault: string | undefined,
  ended: EndedAccess | undefined,
): { error_description?: string | undefined } {
  if (error === 'invalid_client' && documentFault !== undefined)
    return { error_description: `the client document cannot be used: ${documentFault}` };
  const { error_detail: rule } = failure as errors.OIDCProviderError;
  if (reason === 'profile_rule' && rule !== undefined) return { error_description: rule };
  const isRefresh = error === 'invalid_grant' && ctx.oidc.params?.grant_type === 'refresh_token';
  const isOwn = ended?.client_id === ctx.oidc.client?.clientId;
  const text = isRefresh ? (isOwn && ended ? explainEnd(ctx, ended) : OF_REFRESH_TOKENS[reason]) : undefined;
  return text === undefined ? {} : { error_description: text };
}
