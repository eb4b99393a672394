import { etagOf } from './etag.js';

/**
 * A successful response whose JSON text already exists (made by PostgreSQL), with headers of its own.
 * Controllers return this or a plain object; {@link ApiAdapter} sends both.
 */
export class JsonResponse {
  constructor(
    readonly json: string | Buffer,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  /** One that stays the same for the life of the process: to be made once, with its bytes and its validator. */
  static unchanging(value: object): JsonResponse {
    const json = Buffer.from(JSON.stringify(value));
    return new JsonResponse(json, { ETag: etagOf(json) });
  }
}
