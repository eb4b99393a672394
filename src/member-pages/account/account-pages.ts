import { unexpired } from '../../database/sql.js';
import { Injectable } from '@nestjs/common';
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
  asking,
  fieldText,
  requireOwnForm,
  sentForm,
  type Form,
} from '../requests/page-requests.js';
import { BrowserSessions, SignInForms } from '../sign-in/sign-in-steps.js';

/** A signed-in member on account or developer pages, and functions that send responses. */
export interface Member {
  readonly response: Response;
  readonly user: SignedInUser;
  readonly session: Session;
  /** Keys of the session's row under the current and the previous SECRET_KEY. */
  readonly sessionKeys: readonly Buffer[];
  readonly by: { readonly actor: 'user'; readonly ip: string | null };
  readonly owner: Owner;
  /** Sends one of the member's pages, with the pending notice if there is one. */
  send(page: MemberPage, status?: number): void;
  /** Redirects to another of the member's pages. @param done notice that the page shows @param count number of affected items */
  redirect(path: string, done?: FlashMessage, count?: number): void;
  /** @returns the path at which the member must first authenticate again; undefined after a recent sign-in */
  confirmationOn(page: SignInPage): Promise<string | undefined>;
}

export interface Sender extends Member {
  readonly form: Form;
}

/** Common parts of pages below `/account` and `/developer`: the current member, sign-in on the page, and notices after a form. */
@Injectable()
export class AccountPages {
  /** Cookie with the notice for the next page: with a URL parameter, anyone could make a link that shows a notice. */
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

  /** Finds the signed-in member. @throws AnsweredOtherwise if there is none, after sending a sign-in page or a redirect */
  async visitor(page: SignInPage, response: Response): Promise<Member> {
    const member = await this.#member(response);
    if (member) return member;
    if (this.config.localSignIn) this.showSignIn(page, response);
    else redirect(response, `${pathOf(page)}/upstream`);
    throw new AnsweredOtherwise();
  }

  /** @param confirmedOn page on which the member must have signed in recently @throws PageFault; AnsweredOtherwise after a redirect */
  async sender(response: Response, form: Form, confirmedOn?: SignInPage): Promise<Sender> {
    const member = await this.sentBy(response, form);
    if (!member) throw new PageFault(401, 'signedOut');
    const confirmation = confirmedOn && (await member.confirmationOn(confirmedOn));
    if (confirmation === undefined) return { ...member, form };
    redirect(response, confirmation);
    throw new AnsweredOtherwise();
  }

  /** Finds a form's sender. @returns undefined if nobody is signed in @throws PageFault if the form is not from our pages */
  async sentBy(response: Response, form: Form): Promise<Member | undefined> {
    requireOwnForm(this.csrf, response.req, form);
    return this.#member(response);
  }

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

type Said = Pick<PageOf<'sign-in'>, 'fault' | 'lead' | 'username' | 'prompted'>;

export const Visitor = asking(AccountPages, (account, context, page: SignInPage) =>
  account.visitor(page, responseOf(context)),
);

export const FormSender = asking(AccountPages, async (account, context, confirmedOn?: SignInPage) =>
  account.sender(responseOf(context), await sentForm(context), confirmedOn),
);

const KNOWN_SECONDS = 600;

const MODEL = 'SentForm';
/** `model` of the row that {@link USE_ONCE} inserts; the row also stores the result of the form. */
const STORED_AS = 'ReplayDetection';

const KEEP = 'UPDATE oauth_state SET payload = $2 WHERE key = $1';

const FIND = `SELECT key, payload FROM oauth_state
WHERE key IN ($1, $2) AND model = '${STORED_AS}' AND ${unexpired()} AND payload IS NOT NULL`;

const TAKE = `WITH kept AS (${FIND} FOR UPDATE
), taken AS (UPDATE oauth_state s SET payload = NULL FROM kept WHERE s.key = kept.key
) SELECT key, payload FROM kept`;

/** Runs a form's action only once, even if the form is sent again within ten minutes. Stores the result encrypted. */
@Injectable()
export class SentForms {
  constructor(
    private readonly dataSource: DataSource,
    private readonly states: OneTimeStates,
    private readonly keys: TokenKeys,
  ) {}

  /** Runs `make` in a transaction, once per form. @returns the result, unless a page has shown it, and the form's id */
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

  /** @returns the result of the form that redirected to this page; undefined if none is stored, or a page has shown it before */
  async take<Made extends object>({ user, response }: Member): Promise<Made | undefined> {
    const made = queryOf(response.req).get('made');
    if (made === null || !FORM_ID.test(made)) return undefined;
    return this.states.find<Made>(TAKE, MODEL, idOf(user.id, made));
  }
}

/** Includes the member, since forms of different members can have the same id. */
function idOf(userId: number, form: string): string {
  return `${userId}-${form}`;
}
