import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent } from '../audit/audit.js';
import { boundChanges, by, type Owner } from '../auth/owner.js';
import { OauthClient } from '../database/schema/entities/credentials/oauth.entity.js';
import { OperatorError } from '../values/operator-error.js';
import { isName } from '../values/string-rules.js';
import { ClientFault, isPageUrl, parseOrigin } from './client-rules.js';
import { readClient, writeClient } from './registrations.js';

/** Columns of an approved app whose changes need an approval. Redirect URIs need it only for a new origin, scopes for a new scope. */
const REVIEWED = ['name', 'logo', 'redirect_uris', 'scopes'] as const satisfies (keyof OauthClient)[];

/** If the owner changes one of these columns, the pending application ends. */
export const APPLIED_FOR = [...REVIEWED, 'policy_uri'] as const satisfies (keyof OauthClient)[];

type ReviewedColumns = Pick<OauthClient, (typeof REVIEWED)[number]>;

/** The result of an app's last review, or its pending application. */
export type ReviewState = 'none' | 'pending' | 'approved' | 'rejected';

/** SQL: the {@link ReviewState} of the client `c`. */
export const REVIEW_STATE = `CASE WHEN c.applied_at IS NOT NULL THEN 'pending' WHEN c.rejection IS NOT NULL THEN 'rejected'
    WHEN c.approved_at IS NOT NULL THEN 'approved' ELSE 'none' END`;

export interface Application {
  readonly purpose: string;
  readonly policy_uri: string;
  readonly reasons: Readonly<Record<string, string>>;
}

export const MAX_PURPOSE = 1_000;
export const MAX_REASON = 300;

/** Finds the first missing, malformed or too long field of an application. */
export function applicationFault(
  { purpose, policy_uri, reasons }: Application,
  scopes: readonly string[],
): 'purpose' | 'policy_uri' | 'reasons' | undefined {
  if (!isName(purpose, MAX_PURPOSE)) return 'purpose';
  if (!isPageUrl(policy_uri)) return 'policy_uri';
  return scopes.every((scope) => isName(reasons[scope] ?? '', MAX_REASON)) ? undefined : 'reasons';
}

/** Applies the changes that wait for an approval to a copy of the app. */
export function wantedClient(client: OauthClient): OauthClient {
  const { logo, ...others } = client.pending_changes ?? {};
  return {
    ...client,
    ...others,
    ...(logo === undefined ? {} : { logo: logo === null ? null : Buffer.from(logo, 'base64') }),
  };
}

/** Finds the changes of an approved app that need another approval; null if there are none. */
export function changesToReview(
  approved: ReviewedColumns,
  wanted: ReviewedColumns,
): OauthClient['pending_changes'] {
  const { name, redirect_uris, scopes } = wanted;
  const hosts = approved.redirect_uris.map(parseOrigin);
  const logoOf = ({ logo }: ReviewedColumns) => logo?.toString('base64') ?? null;
  // The order in which jsonb stores these keys, since changes are compared as JSON text.
  const changes = {
    ...(logoOf(wanted) === logoOf(approved) ? {} : { logo: logoOf(wanted) }),
    ...(name === approved.name ? {} : { name }),
    ...(scopes.every((scope) => approved.scopes.includes(scope)) ? {} : { scopes }),
    ...(redirect_uris.every((uri) => hosts.includes(parseOrigin(uri))) ? {} : { redirect_uris }),
  };
  return Object.keys(changes).length === 0 ? null : changes;
}

/** Returns the columns of waiting changes as they apply before the approval: without new scopes and origins, otherwise unchanged. */
export function withoutUnreviewed(
  approved: ReviewedColumns,
  wanted: ReviewedColumns,
  waiting: NonNullable<OauthClient['pending_changes']>,
): Partial<ReviewedColumns> {
  const origins = approved.redirect_uris.map(parseOrigin);
  const scopes = wanted.scopes.filter((scope) => approved.scopes.includes(scope));
  const redirect_uris = wanted.redirect_uris.filter((uri) => origins.includes(parseOrigin(uri)));
  const columns: ReviewedColumns = {
    ...approved,
    ...(scopes.length > 0 ? { scopes } : {}),
    ...(redirect_uris.length > 0 ? { redirect_uris } : {}),
  };
  const names = REVIEWED.filter((name) => name in waiting);
  return Object.fromEntries(names.map((name) => [name, columns[name]]));
}

/** Manages reviews of the apps that members register. */
@Injectable()
export class ClientReviews {
  constructor(private readonly dataSource: DataSource) {}

  /** Returns the logo, or the new logo that waits for an approval. @throws UnknownClient */
  async wantedLogo(id: string): Promise<Buffer | null> {
    return wantedClient(await readClient(this.dataSource.manager, id, undefined, false)).logo;
  }

  /** Applies for a review of the app, including its pending changes. @throws UnknownClient, ClientFault, TooManyChanges, OperatorError */
  async apply(
    id: string,
    { policy_uri, ...application }: Application,
    owner: Owner,
    within: EntityManager = this.dataSource.manager,
  ): Promise<void> {
    if (!isPageUrl(policy_uri)) throw new ClientFault('page', 'policy_uri', policy_uri);
    await audited(within, async (manager) => {
      const client = await readClient(manager, id, owner);
      await boundChanges(manager, owner.userId);
      if (client.applied_at || (client.approved_at && !client.pending_changes))
        throw new OperatorError(`The client ${id} has nothing to review, or waits for a review`);
      const { scopes } = wantedClient(client);
      if (scopes.some((scope) => application.reasons[scope] === undefined))
        throw new OperatorError(`The application of the client ${id} must give a reason for each scope`);
      await manager.update(
        OauthClient,
        { id },
        { application, policy_uri, applied_at: () => 'now()', rejection: null },
      );
      await recordEvent(manager, {
        type: 'client.applied',
        actor: 'user',
        ...by(owner),
        clientId: id,
        details: { scopes },
      });
    });
  }

  /** Approves or rejects an application. @param appliedAt time of the expected application @returns number of ended grants */
  async review(
    id: string,
    result:
      | { readonly approved: true; readonly scopes?: readonly string[] | undefined }
      | { readonly rejection: string },
    appliedAt?: string,
  ): Promise<number> {
    return audited(this.dataSource, async (manager) => {
      const live = await readClient(manager, id);
      if (!(await isPending(manager, id, appliedAt)))
        throw new OperatorError(
          `The client ${id} has no pending application${appliedAt === undefined ? '' : ` of ${appliedAt}`}: \`pua clients review ${id}\` shows its state`,
        );
      const event = { type: 'client.reviewed', actor: 'admin', userId: live.owner_id, clientId: id } as const;
      if ('rejection' in result) {
        await manager.update(OauthClient, { id }, { applied_at: null, rejection: result.rejection });
        await recordEvent(manager, { ...event, details: { result: 'rejected', reason: result.rejection } });
        return 0;
      }
      const wanted = wantedClient(live);
      const { scopes = wanted.scopes } = result;
      const beyond = scopes.filter((scope) => !wanted.scopes.includes(scope));
      if (beyond.length > 0)
        throw new OperatorError(`The client ${id} did not apply for ${beyond.join(', ')}: omit these scopes`);
      const { grants, saved } = await writeClient(manager, live, {
        ...wanted,
        scopes: [...scopes],
        pending_changes: null,
        applied_at: null,
      });
      await manager.update(OauthClient, { id }, { approved_at: () => 'now()', rejection: null });
      const { name, redirect_uris } = saved;
      await recordEvent(manager, {
        ...event,
        details: { result: 'approved', name, scopes: saved.scopes, redirect_uris },
      });
      return grants;
    });
  }
}

async function isPending(manager: EntityManager, id: string, appliedAt?: string): Promise<boolean> {
  const found = await manager.query<unknown[]>(
    'SELECT FROM oauth_clients WHERE id = $1 AND applied_at IS NOT NULL AND ($2::text IS NULL OR api_time(applied_at) = $2)',
    [id, appliedAt ?? null],
  );
  return found.length > 0;
}
