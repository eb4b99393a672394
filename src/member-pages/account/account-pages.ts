import { unexpired } from '../../database/sql.js';
import { createParamDecorator, Injectable, type PipeTransform } from '@nestjs/common';
import type { Response } from 'express';
import type { Session } from 'oidc-provider';
import { DataSource, type EntityManager } from 'typeorm';
import { BrowserCookie, Csrf } from '../../accounts/browser-cookies.js';
import { SignInMethods } from '../../accounts/sign-in/sign-in-methods.js';
import { USE_ONCE } from '../../auth/access-tokens.js';
import type { Owner } from '../../auth/owner.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { OneTimeStates } from '../../authorization-server/adapters/state.adapter.js';
import { Config } from '../../config/config.js';
import { TokenKeys } from '../../crypto/hmac.js';
import { pathOf, type SignInPage } from '../../federation/upstream-sign-ins.js';
import { queryOf } from '../../http/input/query.js';
import { responseOf } from '../../http/pipeline/request-context.js';
import { addressOf } from '../../values/network.js';
import type {
  FlashMessage,
  MemberPage,
  MemberPageParts,
  PageOf,
  SignedInUser,
} from '../rendering/page-contents.js';
import { FORM_ID, Pages, redirect } from '../rendering/pages.js';
import { ENGLISH } from '../rendering/wording.js';
import {
  AnsweredOtherwise,
  fieldText,
  requireOwnForm,
  sentForm,
  type Form,
} from '../requests/page-requests.js';
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
      send: (page, status = 200) =>
        this.pages.send(response, status, { ...page, ...this.#takeDone(response), csrf, user }),
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

/** How long a form that was sent is known, and what it made can be shown, in seconds. */
const KNOWN_SECONDS = 600;

const MODEL = 'SentForm';
/** See {@link USE_ONCE}, whose row also keeps what the form made. */
const STORED_AS = 'ReplayDetection';

const KEEP = 'UPDATE oauth_state SET payload = $2 WHERE key = $1';

const FIND = `SELECT key, payload FROM oauth_state
WHERE key IN ($1, $2) AND model = '${STORED_AS}' AND ${unexpired()} AND payload IS NOT NULL`;

const TAKE = `WITH kept AS (${FIND} FOR UPDATE
), taken AS (UPDATE oauth_state s SET payload = NULL FROM kept WHERE s.key = kept.key
) SELECT key, payload FROM kept`;

/**
 * Forms that make something: however often one is sent, twice at once or again after a reload, it makes it once. What was made is
 * then shown by the page to which the browser is redirected, also once: until then it is kept encrypted, under the form's id.
 */
@Injectable()
export class SentForms {
  constructor(
    private readonly dataSource: DataSource,
    private readonly states: OneTimeStates,
    private readonly keys: TokenKeys,
  ) {}

  /**
   * Runs `make`, in a transaction, unless the member sent this form before; one that is sent meanwhile waits for its end. If it throws,
   * the form counts as not sent.
   *
   * @returns what it made, now or before, unless that was shown since; and the form's id, which the
   * page that is to show it gets as its parameter `made`
   */
  async once<Made extends object>(
    { user, form }: Sender,
    make: (manager: EntityManager) => Promise<Made>,
  ): Promise<{ readonly made: Made | undefined; readonly formId: string }> {
    const formId = fieldText(form.form);
    if (!FORM_ID.test(formId)) throw new PageFault(400, 'malformed');
    const id = idOf(user.id, formId);
    const made = await this.dataSource.transaction(async (manager) => {
      const first = await manager.query<unknown[]>(USE_ONCE, [
        this.keys.everyKeyOf(MODEL, id),
        KNOWN_SECONDS,
      ]);
      if (first.length === 0) return undefined;
      const result = await make(manager);
      const { key, payload } = this.states.seal(MODEL, id, result);
      await manager.query(KEEP, [key, payload]);
      return result;
    });
    return { made: made ?? (await this.states.find<Made>(FIND, MODEL, id)), formId };
  }

  /** @returns what the form made that redirected the member here; undefined if that was shown before */
  async take<Made extends object>({ user, response }: Member): Promise<Made | undefined> {
    const made = queryOf(response.req).get('made');
    if (made === null || !FORM_ID.test(made)) return undefined;
    return this.states.find<Made>(TAKE, MODEL, idOf(user.id, made));
  }
}

/** Another member's form of the same id is another one. */
function idOf(userId: number, form: string): string {
  return `${userId}-${form}`;
}
