import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent, type NewAuthEvent } from '../audit/audit.js';
import { boundChanges, LimitReached, type Owner } from '../auth/owner.js';
import { UnknownClient } from './registrations.js';
import { ConnectedApps } from './connected-apps.js';

export const MAX_TESTERS = 25;

/** A tester whom an app's owner invited, as the owner sees them. Times are in the API's format. */
export interface Tester {
  readonly username: string;
  readonly invited_at: string;
  /** null if the member has not accepted, or no member has this username. */
  readonly accepted_at: string | null;
}

/** An invitation to an app that is not approved, as the invited member sees it. */
export interface Invitation {
  readonly client_id: string;
  readonly client_name: string;
  readonly redirect_uri: string;
  readonly has_logo: boolean;
  /** Username of the app's owner. */
  readonly invited_by: string;
  readonly is_accepted: boolean;
}

/** Locks the app, so that concurrent invitations and removals wait. */
const LOCK =
  'SELECT approved_at IS NOT NULL AS is_approved FROM oauth_clients WHERE id = $1 AND owner_id = $2 FOR NO KEY UPDATE';

const LIST = `SELECT username, api_time(invited_at) AS invited_at, api_time(accepted_at) AS accepted_at
FROM app_testers WHERE client_id = $1 ORDER BY username`;

const INVITE = `INSERT INTO app_testers (client_id, username, user_id)
SELECT $1, fold_case($2), (SELECT id FROM users WHERE folded_username = fold_case($2) AND disabled_at IS NULL)
WHERE (SELECT count(*) FROM app_testers WHERE client_id = $1) < ${MAX_TESTERS} ON CONFLICT DO NOTHING RETURNING client_id`;

const IS_INVITED = 'SELECT FROM app_testers WHERE client_id = $1 AND username = fold_case($2)';

const REMOVE = `DELETE FROM app_testers WHERE client_id = $1 AND username = $2 RETURNING user_id`;

const OF_MEMBER = `SELECT c.id AS client_id, c.name AS client_name, c.redirect_uris[1] AS redirect_uri, c.logo IS NOT NULL AS has_logo,
  o.username AS invited_by, bool_or(t.accepted_at IS NOT NULL) AS is_accepted
FROM app_testers t JOIN oauth_clients c ON c.id = t.client_id JOIN users o ON o.id = c.owner_id
WHERE t.user_id = $1 AND c.approved_at IS NULL AND c.disabled_at IS NULL
GROUP BY c.id, o.username ORDER BY max(t.invited_at) DESC, c.id LIMIT 100`;

const ACCEPT = `UPDATE app_testers t SET accepted_at = now() FROM oauth_clients c
WHERE t.client_id = $2 AND t.user_id = $1 AND t.accepted_at IS NULL
  AND c.id = t.client_id AND c.approved_at IS NULL AND c.disabled_at IS NULL RETURNING t.client_id`;

const LEAVE = `DELETE FROM app_testers t USING oauth_clients c WHERE t.client_id = $2 AND t.user_id = $1 AND c.id = t.client_id
RETURNING c.approved_at IS NOT NULL AS is_approved`;

type Actor = Pick<NewAuthEvent, 'actor' | 'ip'>;

/** Manages testers: members who can use an app before its approval. If one leaves before it, the app's access to their data ends. */
@Injectable()
export class AppTesters {
  constructor(
    private readonly dataSource: DataSource,
    private readonly access: ConnectedApps,
  ) {}

  list(clientId: string): Promise<Tester[]> {
    return this.dataSource.query<Tester[]>(LIST, [clientId]);
  }

  /** Invites a tester, without revealing whether the username exists. @throws UnknownClient, TooManyChanges, LimitReached */
  invite(clientId: string, username: string, owner: Owner): Promise<void> {
    return audited(this.dataSource, async (manager) => {
      await lock(manager, clientId, owner);
      await boundChanges(manager, owner.userId);
      const invited = await manager.query<unknown[]>(INVITE, [clientId, username]);
      if (invited.length === 0) {
        const before = await manager.query<unknown[]>(IS_INVITED, [clientId, username]);
        if (before.length === 0) throw new LimitReached(`the app has ${MAX_TESTERS} testers already`);
        return;
      }
      await recordEvent(manager, { type: 'tester.invited', ...byOwner(owner), clientId });
    });
  }

  /** Removes a tester, and ends an unapproved app's access to their data. @param username as in {@link list} @throws UnknownClient */
  remove(clientId: string, username: string, owner: Owner): Promise<number | null> {
    return audited(this.dataSource, async (manager) => {
      const { is_approved } = await lock(manager, clientId, owner);
      const [[tester]] = await manager.query<[{ user_id: number | null }[], number]>(REMOVE, [
        clientId,
        username,
      ]);
      if (!tester) return null;
      const { user_id: userId } = tester;
      if (userId !== null && !is_approved)
        await this.access.revoke(userId, clientId, { actor: 'client' }, manager);
      await recordEvent(manager, { type: 'tester.removed', ...byOwner(owner), clientId });
      return userId;
    });
  }

  /** Lists the newest invitations first. */
  ofMember(userId: number): Promise<Invitation[]> {
    return this.dataSource.query<Invitation[]>(OF_MEMBER, [userId]);
  }

  accept(userId: number, clientId: string, by: Actor): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      const [accepted] = await manager.query<[unknown[], number]>(ACCEPT, [userId, clientId]);
      if (accepted.length === 0) return false;
      await recordEvent(manager, { type: 'tester.accepted', ...by, userId, clientId });
      return true;
    });
  }

  /** Declines an invitation, or ends testing and an unapproved app's access. @returns whether the member had an invitation */
  leave(userId: number, clientId: string, by: Actor): Promise<boolean> {
    return audited(this.dataSource, async (manager) => {
      const [[left]] = await manager.query<[{ is_approved: boolean }[], number]>(LEAVE, [userId, clientId]);
      if (!left) return false;
      if (!left.is_approved) await this.access.revoke(userId, clientId, by, manager);
      await recordEvent(manager, { type: 'tester.left', ...by, userId, clientId });
      return true;
    });
  }
}

const byOwner = ({ userId, ip }: Owner) => ({ actor: 'user', userId, ip }) as const;

async function lock(manager: EntityManager, clientId: string, owner: Owner) {
  const [client] = await manager.query<{ is_approved: boolean }[]>(LOCK, [clientId, owner.userId]);
  if (!client) throw new UnknownClient(clientId);
  return client;
}
