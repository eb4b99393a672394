import { Injectable } from '@nestjs/common';
import { MemberReads } from '../database/member-reads.js';
import type { CursorPosition } from '../database/keyset.js';
import { filtersOf, type List, type ListQuery } from '../database/list.js';
import { JsonResponse } from './output/json-response.js';
import { Cursor, WholeNumber } from './input/parameters.js';
import { Config } from '../config/config.js';
import { SignedCursors } from './signed-cursors.js';

/** The parameters of every list. */
export class PageQuery {
  @WholeNumber(1, 100, 'Maximum number of items per page')
  limit = 20;

  @Cursor()
  cursor?: string;
}

const HEAD = Buffer.from('{"data":[');
const NOTHING = Buffer.alloc(0);

/** Keyset paging with opaque, signed cursors (docs/api-contract.md §7). */
@Injectable()
export class Paging {
  readonly #cursors: SignedCursors;
  readonly #publicUrl: string;

  constructor(
    private readonly reads: MemberReads,
    config: Config,
  ) {
    this.#cursors = new SignedCursors(config.secrets);
    this.#publicUrl = config.publicUrl;
  }

  /**
   * Answers with the page of the list that the query asks for: `data`, `pagination`, and the headers Link and X-Total-Count.
   *
   * @param path as sent, for the links to other pages
   * @param fixed whether the list takes neither limit nor sort
   * @param recent whether it promises what changed since a moment (see {@link MemberReads.of})
   * @throws Problem invalid_cursor where the cursor is not one of this list
   */
  async page<Query extends ListQuery>(
    list: List<Query>,
    userId: number,
    path: string,
    query: Query,
    { fixed = false, recent = false } = {},
  ): Promise<JsonResponse> {
    const { limit, sort, cursor } = query;
    const filters = filtersOf(query);
    const binding = [userId, path, sort, filters]; // a cursor is valid for no other list
    const position = cursor === undefined ? undefined : this.#position(binding, cursor);
    const page = await list.page(this.reads.of(userId, { recent }), userId, query, position);

    const { items, found, total, behind, near_key, near_id, far_key, far_id } = page;
    const forwards = position === undefined || position.side === 'after' || position.side === 'from';
    const cursorAt = (side: CursorPosition['side'], key: string | null, id: number) =>
      this.#cursors.make(binding, [side, key, id]);
    const onward = found > limit ? cursorAt(forwards ? 'after' : 'before', far_key, far_id!) : null;
    let back: string | null = null;
    if (behind && near_id !== null) back = cursorAt(forwards ? 'before' : 'after', near_key, near_id);
    // An empty page has no row to start from: the previous page begins with the position that led here, inclusive.
    else if (behind) back = cursorAt(forwards ? 'until' : 'from', position!.key, position!.id);
    const [next, previous] = forwards ? [onward, back] : [back, onward];
    const pagination = {
      limit,
      count: Math.min(found, limit),
      total,
      has_more: next !== null,
      next_cursor: next,
      prev_cursor: previous,
      sort,
    };
    const parameters = new URLSearchParams(fixed ? {} : { limit: String(limit), sort });
    for (const [name, value] of Object.entries(filters)) parameters.set(name, String(value));
    const url = `${this.#publicUrl}${path}?${parameters.toString()}`;
    const links = [`<${url}>; rel="first"`];
    if (previous !== null) links.push(`<${url}&cursor=${previous}>; rel="prev"`);
    if (next !== null) links.push(`<${url}&cursor=${next}>; rel="next"`);
    // Never a string: joined into one, the items would be copied twice more, which is expensive once a character is beyond Latin-1.
    const json = Buffer.concat([
      HEAD,
      typeof items === 'string' ? Buffer.from(items) : (items ?? NOTHING),
      Buffer.from(`],"pagination":${JSON.stringify(pagination)}}`),
    ]);
    return new JsonResponse(json, { Link: links.join(', '), 'X-Total-Count': String(total) });
  }

  #position(binding: readonly unknown[], cursor: string): CursorPosition {
    const [side, key, id] = this.#cursors.read<[CursorPosition['side'], string | null, number]>(
      binding,
      cursor,
      'this list',
    );
    return { side, key, id };
  }
}
