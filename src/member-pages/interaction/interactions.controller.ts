import { Controller, Get, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { errors, type Client, type Interaction } from 'oidc-provider';
import { Csrf } from '../../accounts/browser-cookies.js';
import type { SignedIn } from '../../accounts/sign-in/sign-in.js';
import { ClientDocuments } from '../../authorization-server/adapters/client-documents.js';
import { AuthorizationServer } from '../../authorization-server/authorization-server.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { type PageClient, pageClientOf } from '../../authorization-server/ports.js';
import { because } from '../../authorization-server/reasons/rejection-reasons.js';
import { allowedScopes, OPENID_SCOPES } from '../../authorization-server/client-scopes.js';
import { PASSKEY_WANTED } from '../../authorization-server/provider/sign-in-policy.js';
import { asksForRejectedOnly, Consents, seenAs } from '../../authorization-server/requests/consents.js';
import {
  accessClientOf,
  choicesFor,
  idleSeconds,
  preselectedFor,
  type Duration,
} from '../../clients/access-durations.js';
import { parseOrigin } from '../../clients/client-rules.js';
import { Config } from '../../config/config.js';
import { UpstreamSignIns, wishesOf } from '../../federation/upstream-sign-ins.js';
import { queryOf } from '../../http/input/query.js';
import type { PageUser } from '../rendering/page-contents.js';
import { Pages, redirect, type Sending } from '../rendering/pages.js';
import { inOrder } from '../rendering/wording.js';
import { FormBody, requireOwnForm, ServesPages, type Form } from '../requests/page-requests.js';
import {
  BrowserSessions,
  requestAgain,
  SignInForms,
  type SignInRejection,
} from '../sign-in/sign-in-steps.js';

/** Sign-in and consent, between an authorization request and its response, below `/interaction/:uid`. */
@Controller('interaction/:uid')
@ServesPages()
export class InteractionsController {
  constructor(
    private readonly config: Config,
    private readonly server: AuthorizationServer,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly consents: Consents,
    private readonly forms: SignInForms,
    private readonly csrf: Csrf,
    private readonly documents: ClientDocuments,
    private readonly upstream: UpstreamSignIns,
  ) {}

  @Get()
  async show(@Res() response: Response): Promise<void> {
    const step = await this.#step(response);
    if (step.interaction.prompt.name !== 'login') await this.#showConsent(response, step);
    else if (this.config.localSignIn) this.#showSignIn(response, step);
    else redirect(response, `${step.shown.path}/upstream`);
  }

  /** Redirects to the external identity provider. The link needs no CSRF protection, since it grants nothing. */
  @Get('upstream')
  async signInUpstream(@Res() response: Response): Promise<void> {
    const { interaction } = await this.#step(response, 'login');
    const wishes = wishesOf(interaction, queryOf(response.req).has('other'));
    this.pages.leaveFor(
      response,
      await this.upstream.begin(response, { interaction: interaction.uid }, wishes),
    );
  }

  #showSignIn(response: Response, step: Step, refusal: Partial<SignInRejection> = {}): void {
    const hint = step.interaction.params.login_hint;
    const typed = typeof hint === 'string' ? { username: hint.slice(0, 100) } : {};
    const passkeys = wantsPasskey(step.interaction) ? 'only' : 'too';
    this.forms.show(response, { ...step.shown, ...typed, ...refusal }, passkeys, uiLocalesOf(step));
  }

  async #showConsent(response: Response, step: Step): Promise<void> {
    const { interaction, client, shown } = step;
    const user = this.#user(interaction);
    if (await this.consents.isClosedTo(user.id, client)) return this.#showNotApproved(response, step, user);
    const before = await this.consents.find(user.id, client);
    const requested = requestedScopes(interaction, client);
    const refused = before && !asksForRejectedOnly(before, requested) ? before.rejected : [];
    const page = {
      name: 'consent',
      ...shown,
      csrf: this.csrf.token(response.req, response),
      user,
      again: before !== undefined,
      seen: seenAs(client),
      durations: this.#choices(step),
      duration: preselectedFor(accessOf(step), this.config, before?.duration),
      idle: idleSeconds(accessOf(step)) / 86_400,
      scopes: inOrder(requested).map((scope) => ({
        name: scope,
        checked: !refused.includes(scope),
        required: OPENID_SCOPES.includes(scope),
        writes: scope.endsWith(':write'),
      })),
    } as const;
    this.pages.send(response, 200, page, uiLocalesOf(step));
  }

  #showNotApproved(response: Response, step: Step, user: PageUser): void {
    const csrf = this.csrf.token(response.req, response);
    this.pages.send(response, 403, { name: 'not-approved', ...step.shown, csrf, user }, uiLocalesOf(step));
  }

  @Post('sign-in')
  async signIn(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const step = await this.#step(response, 'login', form);
    if (!this.config.localSignIn || wantsPasskey(step.interaction)) throw new PageFault(400, 'malformed');
    await this.#finishSignIn(response, step, await this.forms.withPassword(response, form, 'authorization'));
  }

  @Post('passkey/options')
  async passkeyOptions(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { shown } = await this.#step(response, 'login', form);
    await this.forms.sendPasskeyOptions(response, shown.path);
  }

  @Post('passkey')
  async signInWithPasskey(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const step = await this.#step(response, 'login', form);
    const result = await this.forms.withPasskey(response, form, step.shown.path, 'authorization');
    await this.#finishSignIn(response, step, result);
  }

  async #finishSignIn(response: Response, step: Step, result: SignedIn | SignInRejection): Promise<void> {
    if ('fault' in result) this.#showSignIn(response, step, result);
    else await this.sessions.finishSignIn(response, step.interaction, result);
  }

  @Post('consent')
  async consent(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const step = await this.#step(response, 'consent', form);
    const { interaction, client } = step;
    const user = this.#user(interaction);
    const requested = requestedScopes(interaction, client);
    const told = { actor: 'user', userId: user.id, clientId: client.clientId } as const;
    if (form.decision !== 'allow') {
      const event = { ...told, type: 'consent.denied', details: { scopes: requested } } as const;
      await this.sessions.decline(response, interaction, 'the member denied access', event);
      return;
    }
    if (await this.consents.isClosedTo(user.id, client)) return this.#showNotApproved(response, step, user);
    const seen_as = seenAs(client);
    if (seen_as !== null && form.seen !== seen_as) return this.#showConsent(response, step);
    const chosen = form.duration ?? preselectedFor(accessOf(step), this.config);
    const duration = this.#choices(step).find((one) => one === chosen);
    if (duration === undefined) throw new PageFault(400, 'malformed');
    const ticked = [form.scope ?? []].flat();
    const granted = requested.filter((scope) => OPENID_SCOPES.includes(scope) || ticked.includes(scope));
    const rejected = requested.filter((scope) => !granted.includes(scope));
    await this.documents.keep(client.clientId);
    const answer = { granted, rejected, seen_as, duration };
    const redirect_origins = [parseOrigin(interaction.params.redirect_uri as string)];
    const event = { ...told, type: 'consent.granted', details: { granted, rejected, duration } } as const;
    const { clientId } = client;
    const decision = { event, consent: { clientId, ...answer, redirect_origins } };
    await this.sessions.finishConsent(response, interaction, decision, answer);
  }

  #choices(step: Step): readonly Duration[] {
    return choicesFor(accessOf(step), this.config);
  }

  @Post('cancel')
  async cancel(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { interaction } = await this.#step(response, undefined, form);
    await this.sessions.decline(response, interaction, 'the member went back to the app');
  }

  /** Restarts the app's request with a new sign-in, so that another member can sign in. */
  @Post('switch-user')
  async switchUser(@Res() response: Response, @FormBody() form: Form): Promise<void> {
    const { interaction } = await this.#step(response, 'consent', form);
    this.pages.leaveFor(response, requestAgain(interaction.params, { prompt: 'login' }));
  }

  /** @param prompt required step; default: any @throws SessionNotFound, PageFault or AnsweredOtherwise for an unusable step or form */
  async #step(response: Response, prompt?: 'login' | 'consent', form?: Form): Promise<Step> {
    const { provider } = this.server;
    const { uid } = response.req.params as { uid: string };
    const interaction = await provider
      .interactionDetails(response.req, response)
      .catch(async (error: unknown) => {
        throw await this.sessions.explain(response, error, uid);
      });
    if (interaction.uid !== uid) throw new errors.SessionNotFound('another interaction');
    const { client_id, redirect_uri } = interaction.params as Record<string, string>;
    const client = await provider.Client.find(client_id!);
    if (!client) throw because('unknown_client', new errors.SessionNotFound('the client no longer exists'));
    if (form) requireOwnForm(this.csrf, response.req, form);
    if (prompt !== undefined && interaction.prompt.name !== prompt)
      throw new errors.SessionNotFound('another step');
    const shown = { path: `/interaction/${uid}`, client: pageClientOf(client, redirect_uri) };
    return { interaction, client, shown };
  }

  #user(interaction: Interaction) {
    const accountId = interaction.session?.accountId;
    const user = accountId === undefined ? undefined : this.sessions.user(accountId);
    if (!user) throw new errors.SessionNotFound('nobody is signed in');
    return user;
  }
}

interface Step {
  readonly interaction: Interaction;
  readonly client: Client;
  /** The app and the step's path. The URLs of the step's forms begin with this path. */
  readonly shown: { readonly path: string; readonly client: PageClient };
}

/** Tells whether the signed-in member must use a passkey for the `acr` that the app requests. */
function wantsPasskey({ prompt, session }: Interaction): boolean {
  return prompt.reasons.includes(PASSKEY_WANTED) && session?.accountId !== undefined;
}

function requestedScopes(interaction: Interaction, client: Client): string[] {
  const asked = (interaction.params.scope as string).split(' ');
  return allowedScopes(client).filter((scope) => asked.includes(scope));
}

function uiLocalesOf({ interaction: { params } }: Step): Sending {
  return { uiLocales: params.ui_locales };
}

const accessOf = ({ client, interaction }: Step) =>
  accessClientOf(client, interaction.params.dpop_jkt !== undefined);
