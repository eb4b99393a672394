import type { Request, Response } from 'express';
import { cookiesNamed } from '../../accounts/cookies.js';
import type { Config } from '../../config/config.js';
import type { Done } from './pages.js';
import { TEXTS } from './texts/texts.js';

/** What was done is said once, by the page that follows: in a cookie, because anybody can write a link with a parameter. */
export class DoneCookie {
  readonly #name: string;
  readonly #attributes: string;

  /** @param path below which the pages are */
  constructor({ publicUrl }: Config, path: string) {
    const secure = publicUrl.startsWith('https:');
    this.#name = secure ? '__Secure-pua_done' : 'pua_done';
    this.#attributes = `Path=${path}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  }

  put(response: Response, done: Done): void {
    response.append('Set-Cookie', `${this.#name}=${done}; Max-Age=60; ${this.#attributes}`);
  }

  take(request: Request, response: Response): Done | undefined {
    const done = cookiesNamed(request, this.#name).find((value): value is Done =>
      Object.hasOwn(TEXTS.en.done, value),
    );
    if (done !== undefined) response.append('Set-Cookie', `${this.#name}=; Max-Age=0; ${this.#attributes}`);
    return done;
  }
}
