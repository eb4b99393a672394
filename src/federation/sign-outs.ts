import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import { UpstreamMembers } from '../accounts/sign-in/upstream-members.js';
import { audited, recordEvent } from '../audit/audit.js';
import { USE_ONCE } from '../auth/access-tokens.js';
import type { UpstreamSignOut } from '../authorization-server/ports.js';
import { OauthDatabase } from '../authorization-server/requests/oauth-database.js';
import { LIFETIMES } from '../authorization-server/lifetimes.js';
import { ConnectedApps } from '../clients/connected-apps.js';
import { Config } from '../config/config.js';
import { Encryption } from '../crypto/encryption.js';
import { TokenKeys } from '../crypto/hmac.js';
import { OpenidProvider, UpstreamFault } from './openid-provider.js';
import { UpstreamSignIns } from './upstream-sign-ins.js';

/** The event in a logout token (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LOGOUT = 'http://schemas.openid.net/event/backchannel-logout';
/** Events of a disabled or deleted account (OpenID RISC Profile 1.0 §2.2, §2.3), which a logout token may also contain. */
const GONE = ['account-disabled', 'account-purged'].map(
  (type) => `https://schemas.openid.net/secevent/risc/event-type/${type}`,
);

const TEXT = z.string().min(1);
/** Claims of a logout token (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const LOGOUT_CLAIMS = z.object({
  sub: TEXT.optional(),
  sid: TEXT.optional(),
  jti: TEXT,
  events: z.looseObject({ [LOGOUT]: z.looseObject({}) }),
  nonce: z.undefined().optional(), // only an ID token has a nonce
});

/** Seconds for which a logout token's id is stored: longer than the token is valid. */
const REMEMBERED_SECONDS = 600;

/** Stores a mark that ends sign-ins in progress: see {@link sessionAdapter}. $3: keys of the token's id; a reused token has no effect. */
const REMEMBER_END = `INSERT INTO oauth_state (key, model, expires_at)
SELECT key, 'ReplayDetection', now() + make_interval(secs => $2) FROM unnest($1::bytea[]) AS key
WHERE NOT EXISTS (SELECT FROM oauth_state WHERE oauth_state.key = ANY ($3::bytea[]) AND oauth_state.expires_at > now()) ORDER BY key
ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at`;

/** Ends browser sessions by keys of the provider's session ($1), of its subject ($2), or of both. */
const END = `DELETE FROM oauth_sessions WHERE COALESCE($1, $2::bytea[]) IS NOT NULL
  AND ($1::bytea[] IS NULL OR upstream_session_key = ANY ($1))
  AND ($2::bytea[] IS NULL OR upstream_subject_key = ANY ($2)) RETURNING user_id`;

/** Maximum duration of a sign-out at the provider, in seconds. */
const MAX_SECONDS = 600;

const KIND = 'UpstreamSignOut';

/** Ends sessions that end at the external identity provider, and, if UPSTREAM_LOGOUT is true, makes URLs that end sessions there. */
@Injectable()
export class SignOuts implements UpstreamSignOut {
  readonly #encryption: Encryption;

  constructor(
    private readonly config: Config,
    private readonly provider: OpenidProvider,
    private readonly signIns: UpstreamSignIns,
    private readonly members: UpstreamMembers,
    private readonly access: ConnectedApps,
    private readonly keys: TokenKeys,
    private readonly database: OauthDatabase,
    private readonly dataSource: DataSource,
  ) {
    this.#encryption = new Encryption(config.secrets, 'upstream-sign-out');
  }

  /** Ends a logout token's sessions; apps keep their access unless it reports a disabled or deleted account. @throws UpstreamFault */
  async redeem(token: string): Promise<void> {
    const claims = LOGOUT_CLAIMS.safeParse(await this.provider.verifyLogoutToken(token));
    if (!claims.success)
      throw new UpstreamFault('wrong', `the claim ${claims.error.issues[0]!.path.join('.')} cannot be used`);
    const { sub, sid, jti, events } = claims.data;
    if (sub === undefined && sid === undefined)
      throw new UpstreamFault('wrong', 'the token names neither subject nor session');
    const used = this.keys.everyKeyOf('UpstreamLogout', jti);
    const isGone = sub !== undefined && GONE.some((type) => Object.hasOwn(events, type));
    const subject = sub === undefined ? null : this.signIns.keysOf('sub', sub);
    const session = sid === undefined || isGone ? null : this.signIns.keysOf('sid', sid);
    // Runs first, so that sign-ins in progress find the mark.
    await this.database.rows(REMEMBER_END, [session ?? subject, LIFETIMES.upstreamEnd, used]);
    const named =
      isGone && this.config.upstream!.claim === 'sub' ? await this.members.find({ sub }) : undefined;
    await audited(this.dataSource, async (manager) => {
      if ((await manager.query<unknown[]>(USE_ONCE, [used, REMEMBERED_SECONDS])).length === 0)
        throw new UpstreamFault('wrong', 'the token was used before');
      const [ended] = await manager.query<[{ user_id: number }[], number]>(END, [session, subject]);
      const members = Map.groupBy(ended, ({ user_id }) => user_id);
      for (const [userId, { length: sessions }] of members)
        await recordEvent(manager, { type: 'session.ended', actor: 'system', userId, details: { sessions } });
      if (!isGone) return;
      for (const userId of new Set([...members.keys(), ...(named ? [named.id] : [])]))
        await this.access.revokeAll(userId, { actor: 'system', ip: null }, manager);
    });
  }

  async addressFor(target?: string, isRepeated = false): Promise<string | undefined> {
    if (this.config.upstream?.logout !== true) return undefined;
    if (!isRepeated && !this.database.current?.signIn.upstream) return undefined;
    const until = Math.floor(Date.now() / 1000) + MAX_SECONDS;
    const state =
      target === undefined ? undefined : this.#encryption.seal({ target, until }, KIND).toString('base64url');
    return (await this.provider.endSessionUrl(state))?.href;
  }

  /** Returns the target that {@link addressFor} encrypted in `state`; undefined if `state` is invalid or has expired. */
  targetOf(state: unknown): string | undefined {
    if (typeof state !== 'string' || !/^[\w-]{1,8192}$/.test(state)) return undefined;
    const sealed = this.#encryption.open<{ target: string; until: number }>(
      Buffer.from(state, 'base64url'),
      KIND,
    );
    return sealed && sealed.until >= Date.now() / 1000 ? sealed.target : undefined;
  }
}
