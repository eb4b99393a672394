import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { BrowserCookie } from '../../accounts/browser-cookies.js';
import { Config } from '../../config/config.js';
import { queryOf } from '../../http/input/query.js';
import { SECURITY_HEADERS } from '../../layout/layout.js';
import { redirect } from './pages.js';
import { LANGUAGE_COOKIE, LANGUAGES } from './wording.js';

const YEAR_SECONDS = 365 * 86_400;

@Injectable()
export class LanguageChoice {
  readonly #cookie: BrowserCookie;
  readonly #origin: string;

  constructor(config: Config) {
    this.#cookie = new BrowserCookie(config, LANGUAGE_COOKIE, '__Secure-', YEAR_SECONDS);
    this.#origin = config.publicUrl;
  }

  /** Stores the language from `?ui_locales=`, and redirects to `path` without this parameter. @returns whether it redirected */
  choose(request: Request, response: Response, path = request.context.path): boolean {
    const query = queryOf(request);
    const language = query.get('ui_locales');
    if (request.method !== 'GET' || language === null) return false;
    query.delete('ui_locales');
    if (!this.remember(language, response)) return false;
    redirect(response.set(SECURITY_HEADERS), this.#origin + path + (query.size > 0 ? `?${query}` : ''));
    return true;
  }

  remember(language: string, response: Response): boolean {
    if (!LANGUAGES.includes(language)) return false;
    this.#cookie.set(response, language);
    return true;
  }
}
