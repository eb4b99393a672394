import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request } from 'express';
import { fingerprint } from '../../crypto/digests.js';

/** A successful response whose JSON text already exists (made by PostgreSQL), with its own headers. {@link ApiAdapter} sends it. */
export class JsonResponse {
  constructor(
    readonly json: string | Buffer,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  /** One that stays the same for the life of the process: to be made once, with its bytes and its validator. */
  static unchanging(value: object): JsonResponse {
    const json = Buffer.from(JSON.stringify(value));
    return new JsonResponse(json, { ETag: computeEtag(json) });
  }
}

/** What compresses a document, the better first (RFC 9110 §8.4.1). Brotli's best level takes 17 times as long for a tenth less. */
const CODINGS = {
  br: (bytes: Buffer) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: promisify(gzip),
};
type Coding = keyof typeof CODINGS;
const CODING_NAMES = Object.keys(CODINGS) as Coding[];

/** As one packet takes anyway, compressed or not. */
const MIN_COMPRESSED = 1_024;
/** Browsers send 30 characters. Of 16 KB, each request would take 3 ms to read them. */
const MAX_ACCEPT_LENGTH = 200;

/** Bytes of a document, with headers that are theirs alone, as `writeHead` takes them. */
interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: readonly string[];
}

/** A document that never changes, so its headers and bytes are made once. Compressed, so it must contain no caller's secret (BREACH). */
export class UnchangingDocument {
  readonly #plain: Variant;
  readonly #compressed: Map<Coding, Promise<Variant>> | undefined;

  constructor(
    content: string | Buffer,
    private readonly headers: Readonly<Record<string, string>>,
  ) {
    const bytes = Buffer.from(content);
    const isText = /^text\/|json|javascript|xml/.test(headers['Content-Type'] ?? '');
    if (isText && bytes.length >= MIN_COMPRESSED && headers.Vary === undefined) this.#compressed = new Map();
    this.#plain = this.#variant(bytes, computeEtag(bytes));
  }

  #variant(bytes: Buffer, etag: string, coding?: Coding): Variant {
    const own = {
      ...this.headers,
      ...(this.#compressed ? { Vary: 'Accept-Encoding' } : {}),
      ...(coding ? { 'Content-Encoding': coding } : {}),
      ETag: etag,
    };
    return { bytes, etag, headers: Object.entries(own).flat() };
  }

  /** Answers GET and HEAD; 304 where the caller has it already (RFC 9110 §13.1.2). */
  async send(request: Request, response: ServerResponse): Promise<void> {
    const { bytes, etag, headers } = await this.#variantFor(request);
    if (response.headersSent) return; // the deadline was first
    if (noneMatch(request.headers['if-none-match'], etag)) {
      response.writeHead(304, [...headers]).end();
      return;
    }
    response.writeHead(200, [...headers, 'Content-Length', String(bytes.length)]);
    response.end(request.method === 'HEAD' ? undefined : bytes);
  }

  /** Made when the first caller asks for it; plain where that fails, until it succeeds. */
  #variantFor(request: Request): Variant | Promise<Variant> {
    const accepted = String(request.headers['accept-encoding'] ?? '');
    if (!this.#compressed || accepted.length > MAX_ACCEPT_LENGTH) return this.#plain;
    const compressed = this.#compressed;
    const coding = CODING_NAMES.find((name) => request.acceptsEncodings(name) === name);
    if (!coding) return this.#plain;
    let variant = compressed.get(coding);
    if (!variant) {
      const etag = this.#plain.etag.replace(/"$/, `-${coding}"`);
      variant = CODINGS[coding](this.#plain.bytes)
        .then((bytes) => this.#variant(bytes, etag, coding))
        .catch(() => {
          compressed.delete(coding);
          return this.#plain;
        });
      compressed.set(coding, variant);
    }
    return variant;
  }
}

/** Makes the strong validator of exactly these bytes (RFC 9110 §8.8.3). */
export function computeEtag(json: string | Buffer): string {
  return `"${fingerprint(json)}"`;
}

/** Makes a strong validator that also holds the state of the row behind the bytes, for {@link parseStates}. @param state hexadecimal */
export function etagWithState(state: string, json: string): string {
  return `"${state}-${fingerprint(json)}"`;
}

/** Tells whether If-None-Match names this validator (weak comparison, RFC 9110 §13.1.2). */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || entityTags(header).some((tag) => tag.replace(/^W\//, '') === etag);
}

/** Reads the states of rows that If-Match names (RFC 9110 §13.1.1); undefined for any row. Weak and foreign tags name none. */
export function parseStates(header: string | undefined): string[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  return entityTags(header).flatMap((tag) => {
    const match = /^"([0-9a-f]{1,16})-[A-Za-z0-9_-]{27}"$/.exec(tag);
    return match ? [match[1]!] : [];
  });
}

/** What programs without headers call the validator: the same without quotes. */
export const versionOf = (etag: string) => etag.slice(1, -1);

/** Reads what {@link versionOf} made, with quotes or without. @returns undefined where it is none */
export function etagOfVersion(text: string): string | undefined {
  const etag = `"${text.replace(/^"(.*)"$/, '$1')}"`;
  return parseStates(etag)?.length === 1 ? etag : undefined;
}

function entityTags(header: string): string[] {
  return header.match(/(?:W\/)?"[^"]*"/g) ?? [];
}

/** Redirects a reader or a program to another URL. */
export function redirectTo(response: ServerResponse, status: 302 | 303 | 308, location: string): void {
  const headers = { 'Cache-Control': 'no-cache', 'Content-Length': '0', 'X-Content-Type-Options': 'nosniff' };
  response.writeHead(status, { ...headers, Location: location }).end();
}
