import type { IncomingMessage, ServerResponse } from 'node:http';
import { etagOf, noneMatch } from './etag.js';

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
