import type { IncomingMessage, ServerResponse } from 'node:http';
import { fingerprint } from '../../crypto/digests.js';

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

/** A document that stays the same for the life of the process: bytes, validator and headers are made once. A handler returns it. */
export class UnchangingDocument {
  readonly #bytes: Buffer;
  readonly #etag: string;
  readonly #headers: readonly string[];

  constructor(content: string | Buffer, headers: Readonly<Record<string, string>>) {
    this.#bytes = Buffer.from(content);
    this.#etag = etagOf(this.#bytes);
    this.#headers = [...Object.entries(headers).flat(), 'ETag', this.#etag];
  }

  /** Answers GET and HEAD; 304 where the caller has it already (RFC 9110 §13.1.2). */
  send({ method, headers }: IncomingMessage, response: ServerResponse): void {
    const known = headers['if-none-match'];
    if (known !== undefined && noneMatch(known, this.#etag)) {
      response.writeHead(304, [...this.#headers]).end();
      return;
    }
    response.writeHead(200, [...this.#headers, 'Content-Length', String(this.#bytes.length)]);
    response.end(method === 'HEAD' ? undefined : this.#bytes);
  }
}

/** Makes the strong validator of exactly these bytes (RFC 9110 §8.8.3). */
export function etagOf(json: string | Buffer): string {
  return `"${fingerprint(json)}"`;
}

/** Makes a strong validator that also holds the state of the row behind the bytes, for {@link statesOf}. @param state hexadecimal */
export function etagWithState(state: string, json: string): string {
  return `"${state}-${fingerprint(json)}"`;
}

/** Tells whether If-None-Match names this validator (weak comparison, RFC 9110 §13.1.2). */
export function noneMatch(header: string, etag: string): boolean {
  return header.trim() === '*' || entityTags(header).some((tag) => tag.replace(/^W\//, '') === etag);
}

/**
 * Reads the states of rows that If-Match names (strong comparison, RFC 9110 §13.1.1): `undefined` for none given or
 * `*`, which any row satisfies; tags that are weak or not ours name none.
 */
export function statesOf(header: string | undefined): string[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  return entityTags(header).flatMap((tag) => {
    const match = /^"([0-9a-f]{1,16})-[A-Za-z0-9_-]{27}"$/.exec(tag);
    return match ? [match[1]!] : [];
  });
}

function entityTags(header: string): string[] {
  return header.match(/(?:W\/)?"[^"]*"/g) ?? [];
}
