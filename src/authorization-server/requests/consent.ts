import type { AdapterPayload } from 'oidc-provider';

/** A member's latest answer to a client's consent prompt. */
export interface Consent {
  readonly granted: readonly string[];
  readonly rejected: readonly string[];
  /** Origins to which codes may be sent because of it; null: those of all redirect URIs of the client. */
  readonly redirect_origins: readonly string[] | null;
}

export interface NewGrant {
  readonly id: string;
  readonly clientId: string;
  /** JSON */
  readonly payload: string;
  /** All that it grants. */
  readonly scopes: readonly string[];
}

/** Gives a grant of the library as it is stored. */
export function newGrant(id: string, payload: AdapterPayload): NewGrant {
  const { jti: _, ...stored } = payload;
  const resources = (payload.resources ?? {}) as Record<string, string>;
  const granted = [(payload.openid as { scope?: string } | undefined)?.scope, ...Object.values(resources)];
  return {
    id,
    clientId: payload.clientId!,
    payload: JSON.stringify(stored),
    scopes: granted.flatMap((scope) => scope?.split(' ') ?? []),
  };
}
