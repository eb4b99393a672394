import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DataSource } from 'typeorm';
import { Csrf } from '../../accounts/csrf.js';
import { MOST_PASSKEYS, WaysIn } from '../../accounts/ways-in.js';
import { PasskeyCeremonies } from '../passkeys/passkey-ceremonies.js';
import { OauthDatabase } from '../storage/oauth-database.js';
import { SignOuts } from '../upstream/sign-outs.js';
import type { CurrentSession } from './browser-sessions.js';
import { DoneNotices } from './done-notices.js';
import { PageFault } from './page-faults.js';
import { CONFIRM_PATH, SECURITY_PATH } from './page-paths.js';
import { Pages } from './pages.js';
import type { Page } from './pages.js';
import { languageOf, textsIn } from './texts/texts.js';
import { browserOf } from './user-agent.js';
import { fill } from './wording.js';

/** A change that was refused, as the page shows it. */
export interface Refused {
  readonly status: 400 | 401 | 409 | 429 | 503;
  readonly fault: NonNullable<Extract<Page, { name: 'security' }>['fault']>;
  readonly retryAfterSeconds?: number;
}

/** The page at {@link SECURITY_PATH}. */
@Injectable()
export class SecurityPage {
  readonly #waysIn: WaysIn;

  constructor(
    private readonly pages: Pages,
    private readonly csrf: Csrf,
    private readonly done: DoneNotices,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly database: OauthDatabase,
    private readonly signOuts: SignOuts,
    dataSource: DataSource,
  ) {
    this.#waysIn = new WaysIn(dataSource);
  }

  /** @param refused the change that was just refused, with its status */
  async send(
    request: Request,
    response: Response,
    { session, user }: CurrentSession,
    refused?: Refused,
  ): Promise<void> {
    const ways = await this.#waysIn.find(user.id, session.loginTs ?? 0);
    if (!ways) throw new PageFault(401, 'signedOut');
    const { passkeys, password, confirmed } = ways;
    const upstream = this.database.current!.upstream !== undefined;
    const canRemove = upstream || password === 'on' || passkeys.length > 1;
    const canSwitch = password === 'off' || upstream || passkeys.length > 0;
    this.pages.send(
      response,
      refused?.status ?? 200,
      {
        name: 'security',
        csrf: this.csrf.token(request, response),
        user,
        ...this.done.take(request, response),
        fault: refused?.fault,
        retryAfterSeconds: refused?.retryAfterSeconds,
        confirm: confirmed ? undefined : CONFIRM_PATH,
        passkeys: this.ceremonies.areOffered
          ? {
              add: { options: `${SECURITY_PATH}/passkeys/options`, action: `${SECURITY_PATH}/passkeys` },
              suggested: nameFor(request),
              items: passkeys.map(({ id, ...shown }) => ({
                ...shown,
                remove: canRemove ? `${SECURITY_PATH}/passkeys/${id}/remove` : undefined,
              })),
              full: passkeys.length >= MOST_PASSKEYS,
            }
          : undefined,
        password,
        change_password: `${SECURITY_PATH}/password`,
        switch_password: canSwitch
          ? `${SECURITY_PATH}/password/${password === 'off' ? 'on' : 'off'}`
          : undefined,
      },
      { formTargets: this.signOuts.formTargets },
    );
  }
}

/** `Chrome on Android` */
function nameFor({ headers }: Request): string {
  const t = textsIn(languageOf(undefined, headers['accept-language']));
  const { browser, system } = browserOf(headers['user-agent'] ?? null);
  if (browser === undefined) return t.security.suggested;
  return system === undefined ? browser : fill(t.sessions.browserOn, { browser, system });
}
