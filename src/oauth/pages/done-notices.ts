import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { cookiesNamed } from '../../accounts/cookies.js';
import { Config } from '../../config/config.js';
import type { Done } from './pages.js';
import { TEXTS } from './texts/texts.js';

/** What was done is said once, by the page that follows: in a cookie, because anybody can write a link with a parameter. */
@Injectable()
export class DoneNotices {
  readonly #cookie: string;
  readonly #attributes: string;

  constructor(config: Config) {
    const secure = config.publicUrl.startsWith('https:');
    this.#cookie = secure ? '__Secure-pua_done' : 'pua_done';
    this.#attributes = `Path=/account; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  }

  /** For the next page of the account. */
  leave(response: Response, done: Done): void {
    response.append('Set-Cookie', `${this.#cookie}=${done}; Max-Age=60; ${this.#attributes}`);
  }

  /** @returns what the page is to say; undefined where nothing was done */
  take(request: Request, response: Response): Done | undefined {
    const done = cookiesNamed(request, this.#cookie).find((value): value is Done =>
      Object.hasOwn(TEXTS.en.done, value),
    );
    if (done !== undefined) response.append('Set-Cookie', `${this.#cookie}=; Max-Age=0; ${this.#attributes}`);
    return done;
  }
}
