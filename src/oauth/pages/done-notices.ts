import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { cookiesNamed } from '../../accounts/cookies.js';
import { Config } from '../../config/config.js';
import type { Done } from './pages.js';
import { ENGLISH } from './texts/texts.js';

/** Carries a notice to the next page, which shows it once. In a cookie, since anybody could craft a link with a parameter. */
@Injectable()
export class DoneNotices {
  readonly #cookie: string;
  readonly #attributes: string;

  constructor(config: Config) {
    const secure = config.publicUrl.startsWith('https:');
    this.#cookie = secure ? '__Secure-pua_done' : 'pua_done';
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  }

  /** Leaves a notice for the next account or developer page. @param count how many items it is about */
  leave(response: Response, done: Done, count?: number): void {
    const value = count === undefined ? done : `${done}.${count}`;
    response.append('Set-Cookie', `${this.#cookie}=${value}; Max-Age=60; ${this.#attributes}`);
  }

  /** @returns the notice that the page should show; empty if there is none */
  take(request: Request, response: Response): { done?: Done; done_count?: number } {
    for (const value of cookiesNamed(request, this.#cookie)) {
      const [, done, count] = /^([a-z-]{1,50})(?:\.(\d{1,6}))?$/.exec(value) ?? [];
      if (done === undefined || !isDone(done)) continue;
      response.append('Set-Cookie', `${this.#cookie}=; Max-Age=0; ${this.#attributes}`);
      return { done, ...(count === undefined ? {} : { done_count: Number(count) }) };
    }
    return {};
  }
}

function isDone(name: string): name is Done {
  return Object.hasOwn(ENGLISH.done, name);
}
