import { Injectable } from '@nestjs/common';
import { MemberReads } from '../database/member-reads.js';
import type { CursorPosition } from '../database/keyset.js';
import { filtersOf, type List, type ListQuery, type PageRow } from '../database/list.js';
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

/** What identifies a list: a cursor is valid for no other. */
interface ListIdentity {
  readonly userId: number;
  readonly path: string;
  /** As in the query, such as `-starts_at`. */
  readonly sort: string;
  /** The validated filters. */
  readonly filters: Readonly<Record<string, unknown>>;
  /** A list that takes neither limit nor sort. */
  readonly fixed: boolean;
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
   * Answers with the page of the list that the query asks for.
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
    const identity = { userId, path, sort: query.sort, filters: filtersOf(query), fixed };
    const position = this.#position(identity, query.cursor);
    const page = await list.page(this.reads.of(userId, { recent }), userId, query, position);
    return this.#answer(identity, position, query.limit, page);
  }

  #position(list: ListIdentity, cursor: string | undefined): CursorPosition | undefined {
    if (cursor === undefined) return undefined;
    const [side, key, id] = this.#cursors.read<[CursorPosition['side'], string | null, number]>(
      identityOf(list),
      cursor,
      'this list',
    );
    return { side, key, id };
  }

  /** The response: `data`, `pagination`, and the headers Link and X-Total-Count. */
  #answer(
    list: ListIdentity,
    position: CursorPosition | undefined,
    limit: number,
    page: PageRow,
  ): JsonResponse {
    const { items, found, total, behind, near_key, near_id, far_key, far_id } = page;
    const forwards = position === undefined || position.side === 'after' || position.side === 'from';
    const beyond = found > limit;
    const onward = beyond
      ? this.#cursor(list, { side: forwards ? 'after' : 'before', key: far_key, id: far_id! })
      : null;
    let back: string | null = null;
    if (behind) {
      // An empty page has no row to start from: the previous page begins with the position that led here, inclusive.
      back =
        near_id === null
          ? this.#cursor(list, { ...position!, side: forwards ? 'until' : 'from' })
          : this.#cursor(list, { side: forwards ? 'before' : 'after', key: near_key, id: near_id });
    }
    const [next, previous] = forwards ? [onward, back] : [back, onward];
    const pagination = {
      limit,
      count: Math.min(found, limit),
      total,
      has_more: next !== null,
      next_cursor: next,
      prev_cursor: previous,
      sort: list.sort,
    };
    const query = queryText(list, limit);
    const link = (rel: string, cursor?: string) =>
      `<${this.#publicUrl}${list.path}?${query}${cursor === undefined ? '' : `&cursor=${cursor}`}>; rel="${rel}"`;
    const links = [link('first')];
    if (previous !== null) links.push(link('prev', previous));
    if (next !== null) links.push(link('next', next));
    // Never a string: joined into one, the items would be copied twice more, which is expensive once a character is beyond Latin-1.
    const json = Buffer.concat([
      HEAD,
      typeof items === 'string' ? Buffer.from(items) : (items ?? NOTHING),
      Buffer.from(`],"pagination":${JSON.stringify(pagination)}}`),
    ]);
    return new JsonResponse(json, {
      Link: links.join(', '),
      'X-Total-Count': String(total),
    });
  }

  #cursor(list: ListIdentity, position: CursorPosition): string {
    return this.#cursors.make(identityOf(list), [position.side, position.key, position.id]);
  }
}

/** The values to which a cursor is bound. */
function identityOf({ userId, path, sort, filters }: ListIdentity): unknown[] {
  return [userId, path, sort, filters];
}

function queryText(list: ListIdentity, limit: number): string {
  const query = new URLSearchParams(list.fixed ? {} : { limit: String(limit), sort: list.sort });
  for (const [name, value] of Object.entries(list.filters)) query.set(name, String(value));
  return query.toString();
}
