import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.js';
import { Encryption } from '../crypto/encryption.js';
import { OauthDatabase } from '../authorization-server/requests/oauth-database.js';
import type { UpstreamSignOut } from '../authorization-server/ports/upstream-sign-out.js';
import { OpenidProvider } from './openid-provider.js';

/** How long a member may take to sign out at the provider, in seconds. */
const LONGEST_SECONDS = 600;

const KIND = 'UpstreamSignOut';

/** Also signs members out at the platform's own login, if UPSTREAM_LOGOUT is true and their session here came from it. */
@Injectable()
export class SignOuts implements UpstreamSignOut {
  readonly #encryption: Encryption;

  constructor(
    private readonly config: Config,
    private readonly provider: OpenidProvider,
    private readonly database: OauthDatabase,
  ) {
    this.#encryption = new Encryption(config.secrets, 'upstream-sign-out');
  }

  get formTargets(): string[] {
    const { origin } = this.provider;
    return this.config.upstream?.logout === true && origin !== undefined ? [origin] : [];
  }

  async addressFor(target?: string): Promise<string | undefined> {
    if (this.config.upstream?.logout !== true || !this.database.current?.upstream) return undefined;
    const until = Math.floor(Date.now() / 1000) + LONGEST_SECONDS;
    const state =
      target === undefined ? undefined : this.#encryption.seal({ target, until }, KIND).toString('base64url');
    return (await this.provider.endSessionUrl(state))?.href;
  }

  /** Where the member goes after the provider's sign-out: only a target that {@link addressFor} sealed is accepted. */
  targetOf(state: unknown): string | undefined {
    if (typeof state !== 'string' || !/^[\w-]{1,8192}$/.test(state)) return undefined;
    const sealed = this.#encryption.open<{ target: string; until: number }>(
      Buffer.from(state, 'base64url'),
      KIND,
    );
    return sealed && sealed.until >= Date.now() / 1000 ? sealed.target : undefined;
  }
}
