import { Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { BrowserCookie } from '../../accounts/browsers/cookies.js';
import { Config } from '../../config/config.js';
import type { FlashMessage } from '../rendering/page-contents.js';
import { ENGLISH } from '../rendering/texts/texts.js';

/** Carries a notice to the next page, which shows it once. In a cookie, since anybody could craft a link with a parameter. */
@Injectable()
export class FlashMessages {
  readonly #cookie: BrowserCookie;

  constructor(config: Config) {
    this.#cookie = new BrowserCookie(config, 'pua_done', '__Secure-', 60);
  }

  /** Leaves a notice for the next account or developer page. @param count how many items it is about */
  leave(response: Response, done: FlashMessage, count?: number): void {
    this.#cookie.set(response, count === undefined ? done : `${done}.${count}`);
  }

  /** @returns the notice that the page should show; empty if there is none */
  take(response: Response): { done?: FlashMessage; done_count?: number } {
    for (const value of this.#cookie.valuesIn(response.req)) {
      const [, done, count] = /^([a-z-]{1,50})(?:\.(\d{1,6}))?$/.exec(value) ?? [];
      if (done === undefined || !isDone(done)) continue;
      this.#cookie.set(response, '', 0);
      return { done, ...(count === undefined ? {} : { done_count: Number(count) }) };
    }
    return {};
  }
}

function isDone(name: string): name is FlashMessage {
  return Object.hasOwn(ENGLISH.done, name);
}
