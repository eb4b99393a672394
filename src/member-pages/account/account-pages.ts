import { createParamDecorator, Injectable, type PipeTransform } from '@nestjs/common';
import type { Response } from 'express';
import type { Session } from 'oidc-provider';
import { BrowserCookie, Csrf } from '../../accounts/browser-cookies.js';
import { SignInMethods } from '../../accounts/sign-in/sign-in-methods.js';
import type { Owner } from '../../auth/owner.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { Config } from '../../config/config.js';
import { TokenKeys } from '../../crypto/hmac.js';
import { pathOf, type SignInPage } from '../../federation/sign-in-pages.js';
import { SignOuts } from '../../federation/sign-outs.js';
import { responseOf } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type {
  FlashMessage,
  MemberPageParts,
  Page,
  PageOf,
  SignedInUser,
} from '../rendering/page-contents.js';
import { Pages, redirect } from '../rendering/pages.js';
import { ENGLISH } from '../rendering/texts/texts.js';
import { AnsweredOtherwise, requireOwnForm, sentForm, type Form } from '../requests/page-requests.js';
import { BrowserSessions, SignInForms } from '../sign-in/sign-in-steps.js';

/** The member who is signed in on the account pages, or on the developer's, with the ways to answer them. */
export interface Member {
  readonly response: Response;
  readonly user: SignedInUser;
  readonly session: Session;
  /** The keys under which the session may be stored. */
  readonly sessionKeys: readonly Buffer[];
  /** Who acts, for the audit trail. */
  readonly by: { readonly actor: 'user'; readonly ip: string | null };
  /** The same as the owner of apps and keys. */
  readonly owner: Owner;
  /** Sends a page of theirs, with the notice of what was done before it, once. */
  send(page: MemberPage, status?: number): void;
  /** Redirects to another of their pages, which shows a notice of what was done. @param count how many items it is about */
  redirect(path: string, done?: FlashMessage, count?: number): void;
  /** @returns where they sign in again before they use a form of this page; undefined if they just did */
  confirmationOn(page: SignInPage): Promise<string | undefined>;
}

/** A member with the form that they sent. */
export interface Sender extends Member {
  readonly form: Form;
}

/** A page of a signed-in member, without the parts that all of them share. */
type MemberPage = Distributed<Extract<Page, MemberPageParts>>;
type Distributed<T> = T extends unknown ? Omit<T, keyof MemberPageParts> : never;

/** Common to all pages below `/account` and `/developer`: the current member, the sign-in in their place, and notices after a form. */
@Injectable()
export class AccountPages {
  /** Carries a notice to the next page: anybody could craft a link with a parameter. */
  readonly #notice: BrowserCookie;

  constructor(
    private readonly config: Config,
    private readonly pages: Pages,
    private readonly sessions: BrowserSessions,
    private readonly csrf: Csrf,
    private readonly signOuts: SignOuts,
    private readonly signInForms: SignInForms,
    private readonly signInMethods: SignInMethods,
    private readonly keys: TokenKeys,
  ) {
    this.#notice = new BrowserCookie(config, 'pua_done', '__Secure-', 60);
  }

  /** Finds the member for whom the page is shown. @throws AnsweredOtherwise if nobody is signed in, and the sign-in was sent instead */
  async visitor(page: SignInPage, response: Response): Promise<Member> {
    const member = await this.#member(response);
    if (member) return member;
    if (this.config.localSignIn) this.showSignIn(page, response);
    else redirect(response, `${pathOf(page)}/upstream`);
    throw new AnsweredOtherwise();
  }

  /**
   * Finds the member who sent a form of such a page.
   *
   * @param confirmedOn for a form that opens their account or their data, so that an abandoned browser is not enough: the page on which
   * they sign in again
   * @throws PageFault if the CSRF token is wrong, or nobody is signed in; AnsweredOtherwise if they signed in too long ago, and were
   * redirected to sign in again
   */
  async sender(response: Response, form: Form, confirmedOn?: SignInPage): Promise<Sender> {
    const member = await this.sentBy(response, form);
    if (!member) throw new PageFault(401, 'signedOut');
    const confirmation = confirmedOn && (await member.confirmationOn(confirmedOn));
    if (confirmation === undefined) return { ...member, form };
    redirect(response, confirmation);
    throw new AnsweredOtherwise();
  }

  /** The same for a form of which it does not matter that nobody is signed in. */
  async sentBy(response: Response, form: Form): Promise<Member | undefined> {
    requireOwnForm(this.csrf, response.req, form);
    return this.#member(response);
  }

  /** Sends the sign-in in place of a page. */
  showSignIn(page: SignInPage, response: Response, said: Said = {}): void {
    const lead = page.startsWith('developer') ? ({ lead: 'toDeveloper' } as const) : {};
    this.signInForms.show(response, { path: pathOf(page), client: null, ...lead, ...said });
  }

  async #member(response: Response): Promise<Member | undefined> {
    const current = await this.sessions.current(response);
    if (!current) return undefined;
    const { user, session } = current;
    const csrf = this.csrf.token(response.req, response);
    const ip = addressOf(response.req) ?? null;
    return {
      response,
      user,
      session,
      sessionKeys: this.keys.keysOf('Session.uid', session.uid),
      by: { actor: 'user', ip },
      owner: { userId: user.id, ip },
      send: (page, status = 200) => {
        const { formTargets } = this.signOuts;
        this.pages.send(
          response,
          status,
          { ...page, ...this.#takeDone(response), csrf, user },
          { formTargets },
        );
      },
      redirect: (path, done, count) => {
        if (done !== undefined) this.#notice.set(response, count === undefined ? done : `${done}.${count}`);
        redirect(response, path);
      },
      confirmationOn: async (page) => {
        const ways = await this.signInMethods.find(user.id, session.loginTs ?? 0);
        return ways?.confirmed === true ? undefined : `${pathOf(page)}/confirm`;
      },
    };
  }

  #takeDone(response: Response): Pick<MemberPageParts, 'done' | 'done_count'> {
    for (const value of this.#notice.valuesIn(response.req)) {
      const [, done, count] = /^([a-z-]{1,50})(?:\.(\d{1,6}))?$/.exec(value) ?? [];
      if (done === undefined || !Object.hasOwn(ENGLISH.done, done)) continue;
      this.#notice.set(response, '', 0);
      return { done: done as FlashMessage, ...(count === undefined ? {} : { done_count: Number(count) }) };
    }
    return {};
  }
}

/** Optional parts of a sign-in page. */
type Said = Pick<PageOf<'sign-in'>, 'fault' | 'lead' | 'username' | 'prompted'>;

/** What a handler asks of the account pages, which only a pipe can be given. */
type Question = (account: AccountPages) => Promise<Member>;

@Injectable()
class AskAccountPages implements PipeTransform<Question, Promise<Member>> {
  constructor(private readonly account: AccountPages) {}

  transform(question: Question): Promise<Member> {
    return question(this.account);
  }
}

const visitor = createParamDecorator((page: SignInPage, context): Question => {
  return (account) => account.visitor(page, responseOf(context));
});

const sender = createParamDecorator(async (page: SignInPage | undefined, context): Promise<Question> => {
  const form = await sentForm(context);
  return (account) => account.sender(responseOf(context), form, page);
});

/** The {@link Member} who is shown the page: see {@link AccountPages.visitor}. */
export const Visitor = (page: SignInPage) => visitor(page, AskAccountPages);

/** The {@link Sender} of a form: see {@link AccountPages.sender}. */
export const FormSender = (confirmedOn?: SignInPage) => sender(confirmedOn, AskAccountPages);
