import { Injectable } from '@nestjs/common';
import type { Client, Grant, KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { QueryResultRow } from 'pg';
import { accessClientOf, choicesFor, idleSeconds, secondsOf } from '../../clients/access-durations.js';
import { parseOrigin } from '../../clients/client-rules.js';
import { CONSENT, OauthDatabase, type Consent, type Authorization } from './oauth-database.js';
import { LIFETIMES } from '../lifetimes.js';
import { allowedScopes, apiResource, OPENID_SCOPES } from '../client-scopes.js';
import { Config } from '../../config/config.js';

const FIND_CONSENT = {
  name: 'find-consent',
  text: `SELECT ${CONSENT} FROM oauth_consents c WHERE c.user_id = $1 AND c.client_id = $2`,
};

const FIND_USABLE = {
  name: 'find-usable-client',
  text: `SELECT c.id FROM oauth_clients c WHERE c.id = $2 AND (c.approved_at IS NOT NULL OR c.owner_id = $1 OR EXISTS (
  SELECT FROM app_testers t WHERE t.client_id = c.id AND t.user_id = $1 AND t.accepted_at IS NOT NULL))`,
};

/** A member's decision on a consent page; the interaction stores it until the server creates the grant and the code. */
export type Answer = Pick<Consent, 'granted' | 'rejected' | 'seen_as' | 'duration'>;

/** Reads members' consents for clients, and creates grants from them. */
@Injectable()
export class Consents {
  constructor(
    private readonly database: OauthDatabase,
    private readonly config: Config,
  ) {}

  /** @returns the member's consent to the client; undefined if there is none for the client's current details */
  async find(userId: number, client: Client): Promise<Consent | undefined> {
    const consent = await this.#read(userId, client.clientId);
    return consent && isSeen(client, consent) ? consent : undefined;
  }

  /** Tells whether the app lacks a required approval, and the member neither owns nor tests it. */
  async isClosedTo(userId: number, client: Client): Promise<boolean> {
    if (!this.config.reviewsApps || client.by_member !== true || client.is_approved === true) return false;
    return (await this.database.read(FIND_USABLE, [userId, client.clientId])).length === 0;
  }

  async #read(userId: number, clientId: string): Promise<Consent | undefined> {
    const member = this.database.current?.signIn.member;
    if (member?.userId !== userId || member.clientId !== clientId)
      return (await this.database.read<Consent & QueryResultRow>(FIND_CONSENT, [userId, clientId]))[0];
    const { granted } = member;
    return granted === null ? undefined : { ...member, granted };
  }

  /** Creates a grant per sign-in, so that the end of one grant does not affect the tokens of other sign-ins. */
  private async createGrant(
    provider: Provider,
    accountId: string,
    clientId: string,
    { granted, rejected }: Pick<Answer, 'granted' | 'rejected'>,
    access: NonNullable<Authorization['access']>,
  ): Promise<Grant> {
    const grant = new provider.Grant({ accountId, clientId });
    const resource = apiResource(this.config);
    const [openid, api] = split(granted);
    const [, rejectedApi] = split(rejected);
    if (openid.length > 0) grant.addOIDCScope(openid.join(' '));
    if (api.length > 0) grant.addResourceScope(resource, api.join(' '));
    if (rejectedApi.length > 0) grant.rejectResourceScope(resource, rejectedApi.join(' '));
    this.database.current!.authorization.access = access;
    await grant.save();
    return grant;
  }

  /**
   * Creates a grant from the decision in this interaction, or from an earlier consent that has not ended, covers every requested scope,
   * allows this origin, and does not reject all requested API scopes. A native client cannot use an earlier consent: other apps can claim
   * its redirect URI (RFC 8252 §8.6).
   */
  async loadExistingGrant(ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { oidc } = ctx;
    const { client, provider, account } = oidc;
    if (!client || !account) return undefined;
    if (await this.isClosedTo(Number(account.accountId), client)) return undefined;
    const accessClient = accessClientOf(client, oidc.params!.dpop_jkt !== undefined);
    const idle = idleSeconds(accessClient);
    const answer = oidc.result?.consent as Answer | undefined;
    if (answer?.granted && isSeen(client, answer))
      return this.createGrant(provider, account.accountId, client.clientId, answer, {
        seconds: secondsOf(answer.duration ?? 'once'),
        chosen: answer.duration ?? 'once',
        idleSeconds: idle,
      });
    if (client.applicationType === 'native') return undefined;
    if (oidc.promptPending('login') || oidc.promptPending('consent')) return undefined;
    const consent = await this.find(Number(account.accountId), client);
    const allowed = allowedScopes(client);
    const asked = [...oidc.requestParamScopes].filter((scope) => allowed.includes(scope));
    if (!consent || consent.has_ended || asksForRejectedOnly(consent, asked)) return undefined;
    const { redirect_origins: origins } = consent;
    if (origins && !origins.includes(parseOrigin(oidc.params!.redirect_uri as string))) return undefined;
    const granted = asked.filter((scope) => consent.granted.includes(scope));
    const rejected = asked.filter((scope) => consent.rejected.includes(scope));
    if (!asked.every((scope) => granted.includes(scope) || rejected.includes(scope))) return undefined;
    const choices = choicesFor(accessClient, this.config);
    const seconds = consent.duration === null ? LIFETIMES.earlierGrant : secondsOf(choices.at(-1)!);
    const decided = { granted, rejected };
    const access = { seconds, chosen: null, idleSeconds: idle };
    return this.createGrant(provider, account.accountId, client.clientId, decided, access);
  }
}

/** Returns a digest of the details on which a consent to an app depends; null for an app that an admin registered. */
export const seenAs = (client: Client): string | null => (client.seen_as as string | undefined) ?? null;

const isSeen = (client: Client, { seen_as = null }: Partial<Answer>) => seen_as === seenAs(client);

/** Tells whether the member rejected all requested API scopes: then the server asks the member again. */
export function asksForRejectedOnly({ rejected }: Consent, asked: readonly string[]): boolean {
  const [, api] = split(asked);
  return api.length > 0 && api.every((scope) => rejected.includes(scope));
}

function split(scopes: readonly string[]): [openid: string[], api: string[]] {
  return [
    scopes.filter((scope) => OPENID_SCOPES.includes(scope)),
    scopes.filter((scope) => !OPENID_SCOPES.includes(scope)),
  ];
}
