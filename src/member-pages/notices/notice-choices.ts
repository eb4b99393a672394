import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { audited, recordEvent } from '../../audit/audit.js';
import { NOTICE_TYPES, NOTICES, type NoticeType } from '../../audit/notices.js';
import { boundChanges } from '../../auth/owner.js';
import { Config } from '../../config/config.js';
import { Hmac } from '../../crypto/hmac.js';

const UNSUBSCRIBE_PATH = '/account/unsubscribe';

/** The token in an unsubscribe link: member id, the two parts of the notice's name, and their HMAC. */
const TOKEN = /^([1-9]\d{0,15})-(\w+)-(\w+)-([\w-]{43})$/;

const FIND = 'SELECT notice FROM muted_notices WHERE user_id = $1 ORDER BY notice';
const LOCK = 'SELECT FROM users WHERE id = $1 AND erased_at IS NULL FOR NO KEY UPDATE';
const UNMUTE = 'DELETE FROM muted_notices WHERE user_id = $1 AND notice <> ALL ($2)';
const MUTE =
  'INSERT INTO muted_notices (user_id, notice) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING';

const isMutable = (notice: string): notice is NoticeType =>
  Object.hasOwn(NOTICES, notice) && NOTICES[notice as NoticeType].canMute;

export const MUTABLE: readonly NoticeType[] = NOTICE_TYPES.filter(isMutable);

@Injectable()
export class NoticeChoices {
  readonly #hmac: Hmac;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    this.#hmac = new Hmac(config.secrets, 'unsubscribe');
  }

  /** @returns the path of the page on which the member can mute the notice without a sign-in */
  linkTo(userId: number, notice: NoticeType): string {
    const code = this.#hmac.of(`${userId}:${notice}`).toString('base64url');
    return `${UNSUBSCRIBE_PATH}/${userId}-${notice.replace('.', '-')}-${code}`;
  }

  /** @returns undefined if {@link linkTo} did not make the token, or members cannot mute the notice */
  read(token: string): { userId: number; notice: NoticeType } | undefined {
    const [, userId, kind, event, code] = TOKEN.exec(token) ?? [];
    const notice = `${kind}.${event}`;
    if (!isMutable(notice) || !this.#hmac.verify(Buffer.from(code!, 'base64url'), `${userId}:${notice}`))
      return undefined;
    return { userId: Number(userId), notice };
  }

  async muted(userId: number, manager: EntityManager = this.dataSource.manager): Promise<string[]> {
    const rows = await manager.query<{ notice: string }[]>(FIND, [userId]);
    return rows.map(({ notice }) => notice);
  }

  choose(userId: number, muted: readonly NoticeType[], ip: string | null): Promise<void> {
    return this.#change(userId, ip, async (manager) => {
      await boundChanges(manager, userId);
      return muted;
    });
  }

  mute(userId: number, notice: NoticeType, ip: string | null): Promise<void> {
    return this.#change(userId, ip, (_, before) => [...before, notice]);
  }

  #change(
    userId: number,
    ip: string | null,
    change: (
      manager: EntityManager,
      before: readonly string[],
    ) => readonly string[] | Promise<readonly string[]>,
  ): Promise<void> {
    return audited(this.dataSource, async (manager) => {
      if ((await manager.query<unknown[]>(LOCK, [userId])).length === 0) return;
      const before = await this.muted(userId, manager);
      const muted = [...new Set(await change(manager, before))].toSorted();
      if (muted.join() === before.join()) return;
      await manager.query(UNMUTE, [userId, muted]);
      await manager.query(MUTE, [userId, muted]);
      await recordEvent(manager, { type: 'notice.chosen', actor: 'user', userId, ip, details: { muted } });
    });
  }
}
