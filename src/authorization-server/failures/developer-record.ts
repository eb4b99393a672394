import type { KoaContextWithOIDC } from 'oidc-provider';
import type { DeveloperRequests } from '../../auth/usage/developer-requests.js';
import {
  MISSING_PARAMETER,
  type RejectionReason,
  type RejectionWords,
} from '../reasons/rejection-reasons.js';
import { maskedInput, placeOf, UUID } from './rejections.js';

/** The wrong parameter by reason; {@link SHOWN} decides whether the developer sees its value. */
const CONCERNED: { readonly [Reason in RejectionReason]?: string } = {
  unknown_client: 'client_id',
  unregistered_redirect_uri: 'redirect_uri',
  unregistered_post_logout_redirect_uri: 'post_logout_redirect_uri',
  other_redirect_uri: 'redirect_uri',
  code_not_found: 'code',
  code_used: 'code',
  refresh_token_not_found: 'refresh_token',
  refresh_token_used: 'refresh_token',
  wrong_code_verifier: 'code_verifier',
  no_pkce: 'code_challenge',
  bad_dpop_proof: 'DPoP',
  request_uri: 'request_uri',
  bad_id_token_hint: 'id_token_hint',
  bad_client_authentication: 'client_assertion',
  scope: 'scope',
  resource: 'resource',
};

/** Parameters whose values developers see, with possible secrets masked. */
const SHOWN: Readonly<Record<string, (sent: unknown) => string | null>> = {
  redirect_uri: withMarkedQuery,
  post_logout_redirect_uri: withMarkedQuery,
  resource: withMarkedQuery,
  scope: (sent) =>
    typeof sent !== 'string'
      ? null
      : sent
          .split(' ', 20)
          .map((scope) => maskedInput(scope, 60))
          .join(' ')
          .slice(0, 200),
};

interface RefusedRequest extends RejectionWords {
  readonly errorId: string;
  readonly failure: Error;
}

/** Records a request of a member's app for the app's developer: the result, and the wrong parameter. */
export function recordDeveloperRequest(
  requests: DeveloperRequests,
  ctx: KoaContextWithOIDC,
  route: string,
  refused?: RefusedRequest,
): void {
  const { client, body, params } = ctx.oidc ?? {};
  // An unknown client may be a member's disabled app, so its rejections are recorded.
  if (client ? client.by_member !== true : refused === undefined) return;
  const sent: Readonly<Record<string, unknown>> = { ...body, ...params };
  const id = client?.clientId ?? sent.client_id;
  if (typeof id !== 'string' || !UUID.test(id)) return;
  const parameter = refused && (CONCERNED[refused.reason] ?? missingOf(refused));
  // The error for a scope contains the rejected scope.
  const { scope } = (refused?.failure ?? {}) as { scope?: unknown };
  const value = (parameter === 'scope' && scope) || sent[parameter ?? ''];
  requests.record(
    { kind: 'client', id },
    {
      startedAt: ctx.req.context.startedAt,
      method: ctx.method.slice(0, 20),
      route,
      status: ctx.status,
      error: refused?.error ?? null,
      reason: refused?.reason ?? null,
      parameter: parameter ?? null,
      value: (parameter !== undefined && SHOWN[parameter]?.(value)) || null,
      error_id: refused?.errorId ?? null,
    },
    client !== undefined,
  );
}

function missingOf({ reason, failure }: RefusedRequest): string | undefined {
  if (reason !== 'missing_parameter') return undefined;
  const { error_description: said } = failure as { error_description?: string };
  return MISSING_PARAMETER.exec(said ?? '')?.[1];
}

/** Replaces a URL's query, which may contain secrets, by `?…`, so that developers see that the URL has a query. */
function withMarkedQuery(sent: unknown): string | null {
  const place = placeOf(sent);
  return place !== null && (sent as string).includes('?') ? `${place}?…` : place;
}
