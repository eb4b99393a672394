import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.js';
import { NoticeChannel } from '../database/postgres/notice-channel.js';
import { Logger } from '../runtime/logger.js';

/** Format of a notice: `<kind>:<id>` (the id may contain colons). Any other notice concerns all credentials. */
const NOTICE = /^(key|user|grant|client):(.+)$/s;

export type Revocation = { readonly kind: 'key' | 'user' | 'grant' | 'client'; readonly id: string } | 'all';

@Injectable()
export class RevocationChannel extends NoticeChannel {
  readonly #listeners: ((revocation: Revocation) => void)[] = [];
  /** Number of revocations, so that no result from before a revocation is cached afterwards. */
  epoch = 0;

  constructor(config: Config, logger: Logger) {
    // The embedded database delivers no notices, so nothing is cached.
    super(config.databaseDirectUrl, {
      applicationName: 'public-user-api revocations',
      channel: 'revocations',
      heartbeatMs: 250,
      // A revocation must take effect within a second.
      trustMs: 900,
    });
    this.onChange = (reason) => {
      if (reason === undefined) logger.info({}, 'the revocation channel is connected again');
      else
        logger.warn(
          { reason },
          'the revocation channel is disconnected: the database verifies each credential',
        );
    };
  }

  onRevocation(listener: (revocation: Revocation) => void): void {
    this.#listeners.push(listener);
  }

  protected begin(): void {
    this.announce('all'); // the channel has missed all revocations before LISTEN
  }

  protected hear(payload: string | undefined): void {
    const [, kind, id] = NOTICE.exec(payload ?? '') ?? [];
    this.announce(id === undefined ? 'all' : { kind: kind as 'key', id });
  }

  /** Notifies this process; the database notifies other processes. */
  announce(revocation: Revocation): void {
    this.epoch++;
    for (const listener of this.#listeners) listener(revocation);
  }
}
