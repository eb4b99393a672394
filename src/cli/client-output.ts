import type { DevelopedUse } from '../auth/usage/developed-use.js';
import type { ClientDetails } from '../clients/clients.service.js';
import { fields, named, table } from './output.js';

/** Formats a client. */
export function printedClient({ secrets, application, pending_changes, ...client }: ClientDetails): string {
  const lines = secrets.map(
    (secret) =>
      `…${secret.last_four} until ${secret.expires_at ?? 'replaced'}, used ${secret.last_used_at ?? 'never'}`,
  );
  const changes = Object.entries(pending_changes ?? {}).map(([column, value]) => [
    `pending ${column}`,
    value,
  ]);
  const reasons = Object.entries(application?.reasons ?? {}).map(([scope, reason]) => [
    `reason ${scope}`,
    reason,
  ]);
  return fields({
    ...client,
    secrets: lines,
    purpose: application?.purpose ?? null,
    ...Object.fromEntries([...reasons, ...changes]),
  });
}

interface ReviewedClient extends ClientDetails {
  readonly owner: { readonly id: number; readonly username: string };
  readonly testers: number;
  readonly requests: DevelopedUse;
}

/** Formats a client with its owner, number of testers, and request counts. */
export function printedReview({ owner, testers, requests, ...client }: ReviewedClient): string {
  const [used] = requests.apps;
  const lines = [
    printedClient(client),
    fields({
      owner: owner.username,
      testers,
      'requests in 30 days': used?.month ?? 0,
      'of which failed': used?.errors_month ?? 0,
    }),
    ...(requests.errors.length > 0 ? [table(requests.errors, ERRORS)] : []),
  ];
  return lines.join('\n');
}

const ERRORS = {
  ...named('method', 'route', 'status', 'error'),
  '30 DAYS': ({ month }: DevelopedUse['errors'][number]) => month,
};

export const CLIENT_COLUMNS: Record<string, (client: ClientDetails) => string | number | readonly string[]> =
  {
    ID: ({ client_id }) => client_id,
    ...named('name', 'type'),
    ...named('profile'),
    AUTHENTICATION: ({ token_endpoint_auth_method }) => token_endpoint_auth_method,
    SCOPES: ({ scopes }) => scopes,
    STATUS: ({ disabled_at }) => (disabled_at === null ? 'enabled' : 'disabled'),
    REVIEW: ({ review }) => (review === 'none' ? '' : review),
    GRANTS: ({ live_grants_count }) => live_grants_count,
  };

/** Makes an authorization URL (RFC 6749 §4.1.1, RFC 7636 §4.3) with the placeholders STATE and CHALLENGE. */
export function authorizeUrl({ client_id, redirect_uris, scopes }: ClientDetails, publicUrl: string): string {
  const url = new URL('/oauth/authorize', publicUrl);
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id,
    redirect_uri: redirect_uris[0]!,
    scope: scopes.join(' '),
    state: 'STATE',
    code_challenge: 'CHALLENGE',
    code_challenge_method: 'S256',
  }).toString();
  return url.href;
}
