import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { MOST_PASSKEYS, SignInMethods } from '../../accounts/sign-in/sign-in-methods.js';
import { PasskeyCeremonies } from '../sign-in/passkey-ceremonies.js';
import { OauthDatabase } from '../../authorization-server/requests/oauth-database.js';
import { AccountPages, type Member } from './account-pages.js';
import { PageFault } from '../../authorization-server/failures/page-fault.js';
import { CONFIRM_PATH, SECURITY_PATH } from '../rendering/page-paths.js';
import type { Page } from '../rendering/page-contents.js';
import { languageOf, textsIn } from '../rendering/texts/texts.js';
import { browserOf } from '../rendering/user-agent.js';
import { fill } from '../rendering/wording.js';

/** A change that was refused, as the page shows it. */
export interface RejectedChange {
  readonly status: 400 | 401 | 409 | 429 | 503;
  readonly fault: NonNullable<Extract<Page, { name: 'security' }>['fault']>;
  readonly retryAfterSeconds?: number;
}

/** The page at {@link SECURITY_PATH}. */
@Injectable()
export class SecurityPage {
  constructor(
    private readonly account: AccountPages,
    private readonly ceremonies: PasskeyCeremonies,
    private readonly database: OauthDatabase,
    private readonly signInMethods: SignInMethods,
  ) {}

  /** @param refused the change that was just refused, with its status */
  async send(response: Response, member: Member, refused?: RejectedChange): Promise<void> {
    const { session, user } = member;
    const ways = await this.signInMethods.find(user.id, session.loginTs ?? 0);
    if (!ways) throw new PageFault(401, 'signedOut');
    const { passkeys, password, confirmed } = ways;
    const upstream = this.database.current!.upstream !== undefined;
    const canRemove = upstream || password === 'on' || passkeys.length > 1;
    const canSwitch = password === 'off' || upstream || passkeys.length > 0;
    this.account.send(
      response,
      member,
      {
        name: 'security',
        ...this.account.takeDone(response),
        fault: refused?.fault,
        retryAfterSeconds: refused?.retryAfterSeconds,
        confirm: confirmed ? undefined : CONFIRM_PATH,
        passkeys: this.ceremonies.areOffered
          ? {
              add: { options: `${SECURITY_PATH}/passkeys/options`, action: `${SECURITY_PATH}/passkeys` },
              suggested: nameFor(response.req),
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
      refused?.status,
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
