import { Injectable } from '@nestjs/common';
import type { Principal } from '../../auth/principal.js';
import { Changes, type ChangePlace } from '../../changes/changes.js';
import { RESOURCES, readScope } from '../../resources/resources.js';
import { Config } from '../../config/config.js';
import { Problem } from '../../http/output/problems.js';
import { MemberReads } from '../../database/member-reads.js';
import { SignedCursors } from '../../http/signed-cursors.js';
import type { SyncAnswer, SyncQuery } from './sync.dto.js';

type CursorPlace = [
  origin: string,
  changedIn: number,
  sequence: number,
  resource: ChangePlace['resource'],
  id: number,
];

/** Reads the changes for a member, as far as the credential may see them. */
@Injectable()
export class SyncService {
  readonly #cursors: SignedCursors;

  constructor(
    private readonly recorded: Changes,
    private readonly reads: MemberReads,
    config: Config,
  ) {
    this.#cursors = new SignedCursors(config.secrets);
  }

  /**
   * Returns the changes after the cursor; without one, a cursor to start from.
   *
   * @throws Problem invalid_cursor if the cursor belongs to another member, or was issued for resources other than the credential may read now
   * @throws Problem cursor_expired if the changes since then have been swept
   */
  async changes({ userId, scopes }: Principal, query: SyncQuery): Promise<SyncAnswer> {
    const { cursor, limit, resources: asked = RESOURCES } = query;
    const resources = RESOURCES.filter(
      (resource) => asked.includes(resource) && scopes.includes(readScope(resource)),
    );
    const binding = ['sync', userId, resources];
    const cursorOf = ({ origin, changedIn, sequence, resource, id }: ChangePlace) =>
      this.#cursors.make(binding, [origin, changedIn, sequence, resource, id] satisfies CursorPlace);
    if (cursor === undefined) {
      const here = await this.recorded.here();
      await this.reads.advance(userId); // what is read from now on must not be older than that position
      return { data: [], next: cursorOf(here), more: false, resources };
    }

    const [origin, changedIn, sequence, resource, id] = this.#cursors.read<CursorPlace>(
      binding,
      cursor,
      'these resources of this member',
    );
    const place = { origin, changedIn, sequence, resource, id };
    const page = await this.recorded.of(userId, resources, place, limit);
    if (!page) throw new Problem('cursor_expired');
    if (page.changes.length > 0) await this.reads.advance(userId);
    return { data: [...page.changes], next: cursorOf(page.next), more: page.more, resources };
  }
}
