import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Session } from 'oidc-provider';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import type { SignedIn } from '../../accounts/sign-in.js';
import { WaysIn } from '../../accounts/ways-in.js';
import { Config } from '../../config/config.js';
import { PasskeyForm } from '../passkeys/passkey-form.js';
import { SignOuts } from '../upstream/sign-outs.js';
import { pathOf, queryOf, UpstreamSignIns } from '../upstream/upstream-sign-ins.js';
import type { SignInPage } from '../upstream/upstream-sign-ins.js';
import { BrowserSessions } from './browser-sessions.js';
import type { SignedInUser } from './browser-sessions.js';
import { DoneNotices } from './done-notices.js';
import type { Form } from './form-body.js';
import { PageFault } from './page-faults.js';
import { confirmPathOf } from './page-paths.js';
import { Pages, redirect } from './pages.js';
import type { Done, Page } from './pages.js';
import { SignInForm } from './sign-in-form.js';
import type { SignInRefusal } from './sign-in-form.js';

/** The member who is signed in on the account pages. */
export interface Member {
  readonly user: SignedInUser;
  readonly session: Session;
  /** For the forms on the page. */
  readonly csrf: string;
}

/** Common to all pages below `/account` and `/developer`: the current member, sign-in on the page, and notices after a form. */
@Injectable()
export class AccountPages {
  readonly #waysIn: WaysIn;

  constructor(
    private readonly config: Config,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly signInForm: SignInForm,
    private readonly csrf: Csrf,
    private readonly upstream: UpstreamSignIns,
    private readonly signOuts: SignOuts,
    private readonly done: DoneNotices,
    private readonly passkeyForm: PasskeyForm,
    dataSource: DataSource,
  ) {
    this.#waysIn = new WaysIn(dataSource);
  }

  /** Finds the member for whom the page is shown. @returns undefined if nobody is signed in; the sign-in was then sent instead */
  async visitor(page: SignInPage, request: Request, response: Response): Promise<Member | undefined> {
    const current = await this.sessions.current(request, response);
    if (current) return { ...current, csrf: this.csrf.token(request, response) };
    if (this.config.localSignIn) this.#showSignIn(page, request, response, 200);
    else redirect(response, `${pathOf(page)}/upstream`);
    return undefined;
  }

  /** Finds the member who sent a form of such a page. @throws PageFault if the CSRF token is wrong, or nobody is signed in */
  async sender(request: Request, response: Response, form: Form): Promise<Member> {
    const member = await this.sentBy(request, response, form);
    if (!member) throw new PageFault(401, 'signedOut');
    return member;
  }

  /** The same for a form of which it does not matter that nobody is signed in. */
  async sentBy(request: Request, response: Response, form: Form): Promise<Member | undefined> {
    this.#checkCsrf(request, form);
    const current = await this.sessions.current(request, response);
    return current && { ...current, csrf: this.csrf.token(request, response) };
  }

  /**
   * Finds the member who sent a form that opens their account or their data, so that an abandoned browser is not enough.
   *
   * @returns undefined if they signed in too long ago; they were redirected to sign in again
   */
  async confirmedSender(
    page: SignInPage,
    request: Request,
    response: Response,
    form: Form,
  ): Promise<Member | undefined> {
    const member = await this.sender(request, response, form);
    const confirmation = await this.confirmationOf(page, member);
    if (confirmation === undefined) return member;
    redirect(response, confirmation);
    return undefined;
  }

  /** @returns where the member signs in again before they use such a form; undefined if they just did */
  async confirmationOf(page: SignInPage, { user, session }: Member): Promise<string | undefined> {
    const ways = await this.#waysIn.find(user.id, session.loginTs ?? 0);
    return ways?.confirmed === true ? undefined : confirmPathOf(pathOf(page));
  }

  /** Sends a page that has a sign-out form. */
  send(response: Response, page: Page, status = 200): void {
    this.pages.send(response, status, page, { formTargets: this.signOuts.formTargets });
  }

  async signInUpstream(page: SignInPage, request: Request, response: Response): Promise<void> {
    const prompted = queryOf(request).has('other');
    // Who is signed in already is asked for a proof that is fresh; anybody else for another account.
    const confirms = prompted && (await this.sessions.current(request, response)) !== undefined;
    const wishes = { prompted, maxAge: confirms ? 0 : undefined };
    redirect(response, await this.upstream.begin(request, response, { account: page }, wishes));
  }

  async signIn(page: SignInPage, request: Request, response: Response, form: Form): Promise<void> {
    this.#checkCsrf(request, form);
    if (!this.config.localSignIn) throw new PageFault(400, 'malformed');
    const result = await this.signInForm.submit(request, response, form, 'account');
    await this.#finishSignIn(page, request, response, result);
  }

  /** Asks a signed-in member to authenticate again; after that they are redirected to the page. */
  async confirm(page: SignInPage, request: Request, response: Response): Promise<void> {
    const visitor = await this.visitor(page, request, response);
    if (!visitor) return;
    const path = pathOf(page);
    if (!this.config.localSignIn) {
      redirect(response, `${path}/upstream?other=1`);
      return;
    }
    const { upstream } = this.upstream.linkFrom(path);
    this.#showSignIn(page, request, response, 200, {
      username: visitor.user.username,
      lead: 'again',
      ...(upstream ? { upstream: { ...upstream, href: `${upstream.href}?other=1` } } : {}),
    });
  }

  /** Sends the passkey options that the sign-in page's script requests. */
  async passkeyOptions(page: SignInPage, request: Request, response: Response, form: Form): Promise<void> {
    this.#checkCsrf(request, form);
    await this.passkeyForm.options(request, response, pathOf(page));
  }

  async signInWithPasskey(page: SignInPage, request: Request, response: Response, form: Form): Promise<void> {
    this.#checkCsrf(request, form);
    const result = await this.passkeyForm.submit(request, response, form, pathOf(page), 'account');
    await this.#finishSignIn(page, request, response, result);
  }

  async #finishSignIn(
    page: SignInPage,
    request: Request,
    response: Response,
    result: SignedIn | SignInRefusal,
  ): Promise<void> {
    if ('status' in result) {
      this.#showSignIn(page, request, response, result.status, result.said);
      return;
    }
    await this.sessions.signIn(request, response, result);
    redirect(response, pathOf(page));
  }

  /** Redirects to another of the member's pages, which shows a notice of what was done. */
  redirectDone(response: Response, path: string, done: Done | undefined): void {
    if (done !== undefined) this.done.leave(response, done);
    redirect(response, path);
  }

  /** Takes the notice of what was done, to be merged into the page. */
  takeDone(request: Request, response: Response): ReturnType<DoneNotices['take']> {
    return this.done.take(request, response);
  }

  #showSignIn(page: SignInPage, request: Request, response: Response, status: number, said: Said = {}): void {
    const path = pathOf(page);
    this.pages.send(response, status, {
      name: 'sign-in',
      action: `${path}/sign-in`,
      csrf: this.csrf.token(request, response),
      client: null,
      ...(isForDevelopers(page) ? { lead: 'toDeveloper' } : {}),
      ...this.upstream.linkFrom(path),
      ...this.passkeyForm.formOn(path),
      ...said,
    });
  }

  #checkCsrf(request: Request, form: Form): void {
    if (!this.csrf.verify(request, form.csrf)) throw new PageFault(403, 'foreignForm');
  }
}

/** Optional parts of a sign-in page. */
type Said = Pick<Extract<Page, { name: 'sign-in' }>, 'fault' | 'lead' | 'username' | 'upstream'>;

function isForDevelopers(page: SignInPage): boolean {
  return page.startsWith('developer');
}
