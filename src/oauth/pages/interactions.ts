import { Injectable } from '@nestjs/common';
import express from 'express';
import type { Request, Response, Router } from 'express';
import { errors } from 'oidc-provider';
import type { Client, Interaction } from 'oidc-provider';
import { Csrf } from '../../accounts/csrf.js';
import { SCOPES } from '../../auth/scopes.js';
import type { Scope } from '../../auth/scopes.js';
import { AuthorizationServer } from '../provider/authorization-server.js';
import { BrowserSessions } from './browser-sessions.js';
import { asksForRefusedAlone, Consents } from '../provider/consents.service.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { formTargetsOf, pageClientOf } from './page-client.js';
import { PageFault } from './page-faults.js';
import { PageRequests } from './page-requests.js';
import type { Form } from './page-requests.js';
import { allowedScopes, ROUTES } from '../provider/provider.js';
import { SignInForm } from './sign-in-form.js';
import type { SignInRefusal } from './sign-in-form.js';

/** What consent says of the scopes that are not the API's. Both come with the sign-in itself. */
const OPENID_MEANINGS: Readonly<Record<string, string>> = {
  openid: 'Know who you are: your username, name and picture',
  offline_access: 'Stay connected while you are away, until you cut it off',
};

export function meaningOf(scope: string): string {
  return OPENID_MEANINGS[scope] ?? SCOPES[scope as Scope];
}

/** The steps between an authorization request and its answer: sign-in and consent, below `/interaction/:uid`. */
@Injectable()
export class Interactions {
  constructor(
    private readonly server: AuthorizationServer,
    private readonly requests: PageRequests,
    private readonly sessions: BrowserSessions,
    private readonly consents: Consents,
    private readonly database: OauthDatabase,
    private readonly signInForm: SignInForm,
    private readonly csrf: Csrf,
  ) {}

  router(): Router {
    const router = express.Router({ caseSensitive: true, strict: true });
    const { requests } = this;
    router.get(
      '/interaction/:uid',
      requests.handler('/interaction/:uid', (request, response) => this.#show(request, response)),
    );
    router.post(
      '/interaction/:uid/sign-in',
      requests.handler('/interaction/:uid/sign-in', (...step) => this.#signIn(...step)),
    );
    router.post(
      '/interaction/:uid/consent',
      requests.handler('/interaction/:uid/consent', (...step) => this.#consent(...step)),
    );
    router.post(
      '/interaction/:uid/cancel',
      requests.handler('/interaction/:uid/cancel', (...step) => this.#cancel(...step)),
    );
    router.post(
      '/interaction/:uid/switch-user',
      requests.handler('/interaction/:uid/switch-user', (...step) => this.#switchUser(...step)),
    );
    return router;
  }

  async #show(request: Request, response: Response): Promise<void> {
    const step = await this.#step(request, response);
    if (step.interaction.prompt.name === 'login') this.#showSignIn(request, response, step, 200);
    else await this.#showConsent(request, response, step);
  }

  #showSignIn(
    request: Request,
    response: Response,
    { interaction, client, formTargets }: Step,
    status: number,
    said: SignInRefusal['said'] = {},
  ): void {
    const hint = interaction.params.login_hint;
    this.requests.send(
      response,
      status,
      {
        name: 'sign-in',
        action: `/interaction/${interaction.uid}/sign-in`,
        cancel: `/interaction/${interaction.uid}/cancel`,
        csrf: this.csrf.token(request, response),
        client: pageClientOf(client, interaction.params.redirect_uri as string),
        ...(typeof hint === 'string' ? { username: hint.slice(0, 100) } : {}),
        ...said,
      },
      formTargets,
    );
  }

  async #showConsent(request: Request, response: Response, step: Step): Promise<void> {
    const { interaction, client, formTargets } = step;
    const user = await this.#user(interaction);
    const before = await this.consents.find(user.id, client.clientId);
    const requested = requestedScopes(interaction, client);
    const refused = before && !asksForRefusedAlone(before, requested) ? before.rejected : [];
    this.requests.send(
      response,
      200,
      {
        name: 'consent',
        action: `/interaction/${interaction.uid}/consent`,
        switch_user: `/interaction/${interaction.uid}/switch-user`,
        csrf: this.csrf.token(request, response),
        client: pageClientOf(client, interaction.params.redirect_uri as string),
        user,
        again: before !== undefined,
        scopes: requested.map((scope) => ({
          name: scope,
          meaning: meaningOf(scope),
          checked: !refused.includes(scope),
          required: scope in OPENID_MEANINGS,
        })),
      },
      formTargets,
    );
  }

  async #signIn(request: Request, response: Response, form: Form): Promise<void> {
    const step = await this.#posted(request, response, form, 'login');
    const result = await this.signInForm.submit(request, response, form, 'authorization');
    if ('status' in result) {
      this.#showSignIn(request, response, step, result.status, result.said);
      return;
    }
    const accountId = String(result.userId);
    this.database.current!.signIns.set(result.userId, result.validSince);
    const returnTo = await this.server.provider.interactionResult(
      request,
      response,
      { login: { accountId, amr: ['pwd'], ts: result.at } },
      { mergeWithLastSubmission: false },
    );
    if (step.interaction.session?.accountId !== undefined && step.interaction.session.accountId !== accountId)
      await this.sessions.forgetMember(request, response);
    this.requests.redirect(response, returnTo);
  }

  async #consent(request: Request, response: Response, form: Form): Promise<void> {
    const { interaction, client } = await this.#posted(request, response, form, 'consent');
    const user = await this.#user(interaction);
    const requested = requestedScopes(interaction, client);
    const event = { actor: 'user', userId: user.id, clientId: client.clientId } as const;
    if (form.decision !== 'allow') {
      await this.database.record({ ...event, type: 'consent.denied', details: { scopes: requested } });
      await this.#finish(request, response, {
        error: 'access_denied',
        error_description: 'the member did not allow it',
      });
      return;
    }
    const ticked = [form.scope ?? []].flat();
    const granted = requested.filter((scope) => scope in OPENID_MEANINGS || ticked.includes(scope));
    const rejected = requested.filter((scope) => !granted.includes(scope));
    await this.consents.remember(user.id, client.clientId, granted, rejected);
    await this.database.record({ ...event, type: 'consent.granted', details: { granted, rejected } });
    const grant = await this.consents.createGrant(this.server.provider, String(user.id), client.clientId, {
      granted,
      rejected,
    });
    await this.#finish(request, response, { consent: { grantId: grant.jti } });
  }

  async #cancel(request: Request, response: Response, form: Form): Promise<void> {
    await this.#posted(request, response, form);
    await this.#finish(request, response, {
      error: 'access_denied',
      error_description: 'the member went back to the app',
    });
  }

  /** Begins the same request anew, at the sign-in. */
  async #switchUser(request: Request, response: Response, form: Form): Promise<void> {
    const { interaction } = await this.#posted(request, response, form, 'consent');
    const asked = Object.entries(interaction.params).filter(([, value]) => typeof value === 'string');
    const parameters = new URLSearchParams({ ...Object.fromEntries(asked), prompt: 'login' });
    this.requests.redirect(response, `${ROUTES.authorization}?${parameters}`);
  }

  async #finish(
    request: Request,
    response: Response,
    result: Parameters<AuthorizationServer['provider']['interactionResult']>[2],
  ): Promise<void> {
    const returnTo = await this.server.provider.interactionResult(request, response, result, {
      mergeWithLastSubmission: !('error' in result),
    });
    this.requests.redirect(response, returnTo);
  }

  /** @throws SessionNotFound where the sign-in has expired or belongs to another browser */
  async #step(request: Request, response: Response): Promise<Step> {
    const { provider } = this.server;
    const interaction = await provider.interactionDetails(request, response);
    if (interaction.uid !== request.params.uid) throw new errors.SessionNotFound('another interaction');
    const client = await provider.Client.find(interaction.params.client_id as string);
    if (!client) throw new errors.SessionNotFound('the client is gone');
    return { interaction, client, formTargets: formTargetsOf(interaction.params.redirect_uri) };
  }

  async #posted(request: Request, response: Response, form: Form, prompt?: string): Promise<Step> {
    const step = await this.#step(request, response);
    if (!this.csrf.verify(request, form.csrf))
      throw new PageFault(403, 'This did not work', 'The form was not sent from our page. Please try again.');
    if (prompt !== undefined && step.interaction.prompt.name !== prompt)
      throw new errors.SessionNotFound('another step');
    return step;
  }

  async #user(interaction: Interaction) {
    const accountId = interaction.session?.accountId;
    const user = accountId === undefined ? undefined : await this.sessions.user(accountId);
    if (!user) throw new errors.SessionNotFound('nobody is signed in');
    return user;
  }
}

interface Step {
  readonly interaction: Interaction;
  readonly client: Client;
  readonly formTargets: readonly string[];
}

function requestedScopes(interaction: Interaction, client: Client): string[] {
  const asked = (interaction.params.scope as string).split(' ');
  return allowedScopes(client).filter((scope) => asked.includes(scope));
}
