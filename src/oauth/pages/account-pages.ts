import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Session } from 'oidc-provider';
import { Csrf } from '../../accounts/csrf.js';
import { Config } from '../../config/config.js';
import { SignOuts } from '../upstream/sign-outs.js';
import { queryOf, UpstreamSignIns } from '../upstream/upstream-sign-ins.js';
import type { AccountPage } from '../upstream/upstream-sign-ins.js';
import { BrowserSessions } from './browser-sessions.js';
import type { SignedInUser } from './browser-sessions.js';
import { DoneCookie } from './done-cookie.js';
import type { Form } from './form-body.js';
import { PageFault } from './page-faults.js';
import { Pages, redirect } from './pages.js';
import type { Done, Page } from './pages.js';
import { SignInForm } from './sign-in-form.js';
import type { SignInRefusal } from './sign-in-form.js';

/** Whoever is signed in on the account pages. */
interface Member {
  readonly user: SignedInUser;
  readonly session: Session;
  /** Of the forms on the page. */
  readonly csrf: string;
}

/** What all pages below `/account` share: who is signed in, how they sign in on the page itself, and what a form has done. */
@Injectable()
export class AccountPages {
  readonly #done: DoneCookie;

  constructor(
    private readonly config: Config,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly signInForm: SignInForm,
    private readonly csrf: Csrf,
    private readonly upstream: UpstreamSignIns,
    private readonly signOuts: SignOuts,
  ) {
    this.#done = new DoneCookie(config, '/account');
  }

  /** For whom the page is shown. @returns undefined where nobody is signed in, who was led to sign in */
  async visitor(page: AccountPage, request: Request, response: Response): Promise<Member | undefined> {
    const current = await this.sessions.current(request, response);
    if (current) return { ...current, csrf: this.csrf.token(request, response) };
    if (this.config.localSignIn) this.#showSignIn(page, request, response, 200);
    else redirect(response, `/account/${page}/upstream`);
    return undefined;
  }

  /** Who sent a form of such a page. @throws PageFault where it is none of ours, or nobody is signed in */
  async sender(request: Request, response: Response, form: Form): Promise<Member> {
    this.#checkCsrf(request, form);
    const current = await this.sessions.current(request, response);
    if (!current) throw new PageFault(401, 'signedOut');
    return { ...current, csrf: this.csrf.token(request, response) };
  }

  /** Answers with a page from which its member can sign out. */
  send(response: Response, page: Page, status = 200): void {
    this.pages.send(response, status, page, { formTargets: this.signOuts.formTargets });
  }

  async signInUpstream(page: AccountPage, request: Request, response: Response): Promise<void> {
    const wishes = { anew: queryOf(request).has('other') };
    redirect(response, await this.upstream.begin(request, response, { account: page }, wishes));
  }

  async signIn(page: AccountPage, request: Request, response: Response, form: Form): Promise<void> {
    this.#checkCsrf(request, form);
    if (!this.config.localSignIn) throw new PageFault(400, 'malformed');
    const result = await this.signInForm.submit(request, response, form, 'account');
    if ('status' in result) {
      this.#showSignIn(page, request, response, result.status, result.said);
      return;
    }
    await this.sessions.signIn(request, response, result);
    redirect(response, `/account/${page}`);
  }

  /** What was done is said once, by the page that follows. */
  redirectDone(response: Response, page: AccountPage, done: Done | undefined): void {
    if (done !== undefined) this.#done.put(response, done);
    redirect(response, `/account/${page}`);
  }

  takeDone(request: Request, response: Response): Done | undefined {
    return this.#done.take(request, response);
  }

  #showSignIn(
    page: AccountPage,
    request: Request,
    response: Response,
    status: number,
    said: SignInRefusal['said'] = {},
  ): void {
    this.pages.send(response, status, {
      name: 'sign-in',
      action: `/account/${page}/sign-in`,
      csrf: this.csrf.token(request, response),
      client: null,
      ...this.upstream.linkFrom(`/account/${page}`),
      ...said,
    });
  }

  #checkCsrf(request: Request, form: Form): void {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
  }
}
