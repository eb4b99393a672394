import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import type { Grant, Interaction, InteractionResults } from 'oidc-provider';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import type { NewAuthEvent } from '../../audit/audit.js';
import { CredentialCache } from '../../auth/credential-cache.js';
import { AuthorizationServer } from '../../authorization-server/authorization-server.js';
import { OauthDatabase, type Decision } from '../../authorization-server/requests/oauth-database.js';
import { OneTimeStates } from '../../authorization-server/requests/one-time-states.js';
import { formTargetsOf } from '../../authorization-server/ports/page-client.js';
import { BrowserSessions } from '../sign-in/browser-sessions.js';
import { isStepGone, PageFault } from '../../authorization-server/failures/page-fault.js';
import { redirect } from '../rendering/pages.js';

/** Ends a step of an app's request, however the member completed it, and returns to the library. */
@Injectable()
export class FinishedSteps {
  constructor(
    private readonly sessions: BrowserSessions,
    private readonly database: OauthDatabase,
    private readonly credentials: CredentialCache,
    private readonly states: OneTimeStates,
    private readonly server: AuthorizationServer,
  ) {}

  async signedIn(
    response: Response,
    interaction: Interaction,
    { userId, at, validSince, amr, acr, upstream }: SignedIn,
  ): Promise<void> {
    const accountId = String(userId);
    const before = interaction.session?.accountId;
    this.database.current!.signIns.set(userId, validSince);
    const login = {
      accountId,
      ts: at,
      ...(amr ? { amr: [...amr] } : {}),
      ...(acr ? { acr } : {}),
      ...(upstream ? { upstream } : {}),
    };
    await this.#store(interaction, { login }, {});
    if (before !== undefined && before !== accountId) await this.sessions.forgetMember(response);
    redirect(response, interaction.returnTo);
  }

  /** Stores that the member has given consent, and the grant that comes of it. @param grant makes it */
  async consented(
    response: Response,
    interaction: Interaction,
    decision: Decision,
    grant: () => Promise<Grant>,
  ): Promise<void> {
    const { jti: grantId } = await grant();
    await this.#store(interaction, { ...interaction.lastSubmission, consent: { grantId } }, decision);
    // Tokens from before may do less now; other processes are notified by the database.
    this.credentials.revoke({ kind: 'user', id: interaction.session!.accountId });
    redirect(response, interaction.returnTo);
  }

  /** Stores that the member declined, for the app. @param event records it */
  async declined(
    response: Response,
    interaction: Interaction,
    description: string,
    event?: NewAuthEvent,
  ): Promise<void> {
    const result = { error: 'access_denied', error_description: description };
    await this.#store(interaction, result, { event });
    redirect(response, interaction.returnTo);
  }

  /**
   * Explains why a step is not found: after Back, a reload or a second click, it is one that ended, and the page says so.
   *
   * @param error of the library
   * @returns what to throw instead
   */
  async explain(error: unknown, uid: string): Promise<unknown> {
    if (!isStepGone(error)) return error;
    const params = await this.states.paramsOfCompleted(uid);
    const client = params && (await this.server.provider.Client.find(params.client_id as string));
    if (!client) return error;
    const [target] = formTargetsOf(params.redirect_uri);
    const href = client.clientUri ?? (target?.includes('//') ? target : undefined); // none for an app on the device
    const next = href === undefined ? {} : { next: { text: 'backToApp', href } as const };
    return new PageFault(410, 'finished', undefined, next, 'sign_in_expired');
  }

  async #store(interaction: Interaction, result: InteractionResults, decision: Decision): Promise<void> {
    this.database.current!.decision = decision;
    interaction.result = result;
    const seconds = interaction.exp - Math.floor(Date.now() / 1000);
    await interaction.save(seconds).catch(async (error: unknown) => {
      throw await this.explain(error, interaction.uid);
    });
  }
}
