import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { FaultName } from '../../authorization-server/failures/page-fault.js';
import { onwardTo, type RepeatedRequest, type ShownPages } from '../../authorization-server/ports.js';
import { BrowserCookie } from '../../accounts/browser-cookies.js';
import { browserOf } from '../../accounts/sign-in/sign-in-origin.js';
import { Config } from '../../config/config.js';
import { randomBytes } from '../../crypto/random.js';
import { queryOf } from '../../http/input/query.js';
import { InlineText, Layout, SECURITY_HEADERS } from '../../layout/layout.js';
import { ACCOUNT_PAGES } from '../../federation/upstream-sign-ins.js';
import { escapeHtml } from '../../values/string-rules.js';
import type { Page } from './page-contents.js';
import { PLATFORM_LOGO_PATH, PlatformLogo } from './logos.controller.js';
import { drawn, PATTERNS } from './chart.js';
import { questionOf } from './questions.js';
import * as wording from './wording.js';

export const SECURITY_PATH = '/account/security';
export const RESET_PATH = '/account/password-reset';
/** The start of the path in the reset email's link; the secret follows. The request log contains the route, not the path. */
export const NEW_PASSWORD_PATH = '/account/new-password';

/** Tells whether this server sends password reset emails. If not, the pages for resetting a password do not exist. */
export function resetsPasswords({ mail, localSignIn, passwordResetUrl }: Config): boolean {
  return localSignIn && mail !== undefined && passwordResetUrl === undefined;
}

const YEAR_SECONDS = 365 * 86_400;

export interface Sending {
  /** The app's languages; default: `ui_locales` in the request's query. */
  readonly uiLocales?: unknown;
  /** The page's query for links to other languages; default: the request's query. */
  readonly query?: URLSearchParams;
}

const scriptIn = (file: string) =>
  new InlineText(readFileSync(new URL(`../templates/${file}`, import.meta.url), 'utf8'));

/** Renders members' pages in the chosen language. */
@Injectable()
export class Pages implements ShownPages {
  readonly languages = wording.LANGUAGES;
  readonly chooseLanguage = wording.chooseLanguage;
  readonly #scripts = {
    passkeys: scriptIn('sign-in/passkeys.js'),
    developer: scriptIn('developer/developer.js'),
    copy: scriptIn('developer/copy.js'),
    onward: scriptIn('sign-in/onward.js'),
  };
  readonly #moments = new Map(
    this.languages.map((language) => [language, new wording.DateTimes(wording.textsIn(language).locale)]),
  );

  readonly #languageCookie: BrowserCookie;

  constructor(
    private readonly config: Config,
    private readonly logo: PlatformLogo,
    private readonly layout: Layout,
  ) {
    this.#languageCookie = new BrowserCookie(config, wording.LANGUAGE_COOKIE, '__Secure-', YEAR_SECONDS);
  }

  meaningOf(fault: FaultName): string {
    return wording.ENGLISH.faults[fault][1];
  }

  send(response: Response, status: number, page: Page, sending: Sending = {}): void {
    const request = response.req;
    const query = queryOf(request);
    const language = this.chooseLanguage(sending.uiLocales ?? query.get('ui_locales'), request.headers);
    const address = page.name === 'onward' ? undefined : (sending.query ?? query);
    const { html, headers } = this.render(page, language, address);
    response
      .status(status)
      .set(headers)
      .end(request.method === 'HEAD' ? undefined : html);
  }

  /** Stores the language from `?ui_locales=`, and redirects to `path` without this parameter. @returns whether it redirected */
  switchLanguage(request: Request, response: Response, path = request.context.path): boolean {
    const query = queryOf(request);
    const language = query.get('ui_locales');
    if (request.method !== 'GET' || language === null) return false;
    query.delete('ui_locales');
    if (!this.rememberLanguage(language, response)) return false;
    const more = query.size > 0 ? `?${query}` : '';
    redirect(response.set(SECURITY_HEADERS), this.config.publicUrl + path + more);
    return true;
  }

  rememberLanguage(language: string, response: Response): boolean {
    if (!this.languages.includes(language)) return false;
    this.#languageCookie.set(response, language);
    return true;
  }

  /** Sends a page that redirects to another origin, or to a path that may redirect there: see {@link onwardTo}. */
  leaveFor(response: Response, to: string): void {
    this.send(response, 200, onwardTo(to));
  }

  /** @param address the page's query, or an app's request, from which to offer other languages; undefined to offer none */
  render(
    page: Page,
    language: string,
    address?: URLSearchParams | RepeatedRequest,
  ): ReturnType<Layout['render']> {
    const { config } = this;
    const platform = {
      name: config.platformName,
      host: new URL(config.publicUrl).host,
      logo: this.logo.image === undefined ? undefined : PLATFORM_LOGO_PATH,
      support: config.supportUrl,
      privacy: config.privacyUrl,
      signUp: config.signUpUrl,
      passwordReset: config.passwordResetUrl ?? (resetsPasswords(config) ? RESET_PATH : undefined),
      hasPasswords: config.localSignIn,
      developerConsole: config.developerConsole,
    };
    const data = {
      page,
      language,
      t: wording.textsIn(language),
      scripts: this.#scripts,
      platform,
      languages: address === undefined ? undefined : languagesOf(address),
      repeated: address && 'to' in address ? address : undefined,
      moments: this.#moments.get(language),
      newFormId,
      browserOf,
      drawn,
      PATTERNS,
      escapeHtml,
      questionOf,
      ...wording,
    };
    const { html, headers } = this.layout.render(
      `member-pages/templates/${folderOf(page)}/${page.name}`,
      data,
      Object.values(this.#scripts),
      page.name === 'onward' && page.form ? undefined : "'self'", // the app may redirect anywhere
    );
    return { html, headers: { ...headers, 'Content-Language': language, Vary: 'Accept-Language, Cookie' } };
  }
}

/** Query parameters with which a page still offers links to other languages. Other parameters may be untrusted or secret. */
const KEPT = ['of', 'other'];

/** Maximum length of an app's request in a form: a form may have 16 KB, and an encoded character may need three bytes. */
const MAX_REPEATED_LENGTH = 5_000;

/** Returns the languages to offer; undefined if a query has parameters other than {@link KEPT}, or the app's request is too long. */
function languagesOf(address: URLSearchParams | RepeatedRequest) {
  const names = [...wording.LANGUAGE_NAMES].map(([language, name]) => ({ language, name }));
  if ('to' in address) return address.to.length > MAX_REPEATED_LENGTH ? undefined : names;
  if (![...address.keys()].every((name) => KEPT.includes(name))) return undefined;
  return names.map(({ language, name }) => {
    const query = new URLSearchParams(address);
    query.set('ui_locales', language);
    return { language, name, href: `?${query}` };
  });
}

/** Pattern of the id in a form's field `form`: see `SentForms`. */
export const FORM_ID = /^[\w-]{24}$/;

/** Generates a {@link FORM_ID}. */
export function newFormId(): string {
  return randomBytes(18).toString('base64url');
}

/** Redirects with 303, so that reloading the next page does not send a form again. */
export function redirect(response: Response, location: string): void {
  response.status(303).set('Location', location).end();
}

function folderOf({ name }: Page): string {
  if (name.startsWith('developer')) return 'developer';
  return (ACCOUNT_PAGES as readonly string[]).includes(name) ? 'account' : 'sign-in';
}
