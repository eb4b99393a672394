import { Injectable } from '@nestjs/common';
import { Hmac } from '../crypto/hmac.js';
import { MemberReads } from '../database/member-reads.js';
import { filtersOf, type CursorPosition, type List, type ListQuery } from '../database/list.js';
import { JsonResponse } from './output/responses.js';
import { Cursor, WholeNumber } from './input/parameters.js';
import { Problem } from './output/problems.js';
import { Config } from '../config/config.js';

export class PageQuery {
  @WholeNumber(1, 100, 'Maximum number of items per page')
  limit = 20;

  @Cursor()
  cursor?: string;
}

const HEAD = Buffer.from('{"data":[');
const NOTHING = Buffer.alloc(0);
const MAC_BYTES = 16;

/** Signed cursors, each valid only for the values in its `binding` (docs/api-contract.md §7). */
@Injectable()
export class SignedCursors {
  readonly #hmac: Hmac;

  constructor({ secrets }: Config) {
    this.#hmac = new Hmac(secrets, 'cursor', MAC_BYTES);
  }

  /** @param binding JSON values that the reader of the cursor must repeat @param position JSON values */
  make(binding: readonly unknown[], position: readonly unknown[]): string {
    const payload = Buffer.from(JSON.stringify(position));
    return Buffer.concat([this.#hmac.of(writeText(binding), payload), payload]).toString('base64url');
  }

  /** @param parameter name of the request parameter that contains the cursor @throws Problem invalid_cursor */
  read<Position extends readonly unknown[]>(
    binding: readonly unknown[],
    cursor: string,
    parameter = 'cursor',
  ): Position {
    const bytes = Buffer.from(cursor, 'base64url');
    const canonical = bytes.toString('base64url') === cursor;
    const payload = bytes.subarray(MAC_BYTES);
    const genuine = canonical && this.#hmac.verify(bytes.subarray(0, MAC_BYTES), writeText(binding), payload);
    if (!genuine) {
      const detail = `${parameter} was altered, belongs to another query or member, or was signed with a key that is no longer in use.`;
      throw new Problem('invalid_cursor', { errors: [{ parameter, code: 'invalid_cursor', detail }] });
    }
    return JSON.parse(payload.toString('utf8')) as Position;
  }
}

/** Keyset paging with opaque, signed cursors (docs/api-contract.md §7). */
@Injectable()
export class Paging {
  constructor(
    private readonly reads: MemberReads,
    private readonly cursors: SignedCursors,
    private readonly config: Config,
  ) {}

  /** Makes a page. @param fixed omits limit and sort from links @param recent as in {@link MemberReads.of} @throws Problem invalid_cursor */
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
      this.cursors.make(binding, [side, key, id]);
    const onward = found > limit ? cursorAt(forwards ? 'after' : 'before', far_key, far_id!) : null;
    let back: string | null = null;
    if (behind && near_id !== null) back = cursorAt(forwards ? 'before' : 'after', near_key, near_id);
    // An empty page has no rows, so the cursor back is the requested position, inclusive.
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
    const url = `${this.config.publicUrl}${path}?${parameters.toString()}`;
    const links = [`<${url}>; rel="first"`];
    if (previous !== null) links.push(`<${url}&cursor=${previous}>; rel="prev"`);
    if (next !== null) links.push(`<${url}&cursor=${next}>; rel="next"`);
    // A Buffer, since joining strings would copy the items again.
    const json = Buffer.concat([
      HEAD,
      typeof items === 'string' ? Buffer.from(items) : (items ?? NOTHING),
      Buffer.from(`],"pagination":${JSON.stringify(pagination)}}`),
    ]);
    return new JsonResponse(json, { Link: links.join(', '), 'X-Total-Count': String(total) });
  }

  #position(binding: readonly unknown[], cursor: string): CursorPosition {
    const [side, key, id] = this.cursors.read<[CursorPosition['side'], string | null, number]>(
      binding,
      cursor,
    );
    return { side, key, id };
  }
}

/** Writes JSON and a NUL, which separates it from the payload: JSON text contains no NUL. */
function writeText(binding: readonly unknown[]): string {
  return `${JSON.stringify(binding)}\0`;
}
