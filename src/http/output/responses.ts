import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request } from 'express';
import { fingerprint } from '../../crypto/digests.js';

/** A successful response: JSON text and further headers. {@link ApiAdapter} sends it. */
export class JsonResponse {
  constructor(
    readonly json: string | Buffer,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  /** Makes a response with precomputed bytes and ETag, for content that never changes. */
  static unchanging(value: object): JsonResponse {
    const json = Buffer.from(JSON.stringify(value));
    return new JsonResponse(json, { ETag: computeEtag(json) });
  }
}

/** Compression methods, the preferred one first (RFC 9110 §8.4.1). Brotli's higher levels are much slower and save little. */
const CODINGS = {
  br: (bytes: Buffer) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: promisify(gzip),
};
type Coding = keyof typeof CODINGS;
const CODING_NAMES = Object.keys(CODINGS) as Coding[];

/** Minimum size to compress, in bytes: a smaller document fits into one packet. */
const MIN_COMPRESSED = 1_024;
/** Longer `Accept-Encoding` headers are not parsed, to save CPU time; browsers send about 30 characters. */
const MAX_ACCEPT_LENGTH = 200;

/** A document's bytes, compressed or not, with their headers in the format of `writeHead`. */
interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: readonly string[];
}

/** A document that never changes. It must not contain a caller's secrets, since it can be compressed (BREACH). */
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

  /** Responds to GET and HEAD; 304 if the caller already has the document (RFC 9110 §13.1.2). */
  async send(request: Request, response: ServerResponse): Promise<void> {
    const { bytes, etag, headers } = await this.#variantFor(request);
    if (response.headersSent) return; // the deadline passed first
    if (noneMatch(request.headers['if-none-match'], etag)) {
      response.writeHead(304, [...headers]).end();
      return;
    }
    response.writeHead(200, [...headers, 'Content-Length', String(bytes.length)]);
    response.end(request.method === 'HEAD' ? undefined : bytes);
  }

  /** Chooses a variant, and compresses it on first use. If this fails, returns the uncompressed variant, and retries next time. */
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

/** Computes the strong validator of these bytes (RFC 9110 §8.8.3). */
export function computeEtag(json: string | Buffer): string {
  return `"${fingerprint(json)}"`;
}

/** Makes a strong validator that contains the row's state, which {@link parseStates} reads. @param state hexadecimal */
export function etagWithState(state: string, json: string): string {
  return `"${state}-${fingerprint(json)}"`;
}

/** Tells whether If-None-Match is `*` or contains this validator (weak comparison, RFC 9110 §13.1.2). */
export function noneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || entityTags(header).some((tag) => tag.replace(/^W\//, '') === etag);
}

/** Parses row states from If-Match (RFC 9110 §13.1.1), ignoring other tags. @returns undefined (any state) without a header, or for `*` */
export function parseStates(header: string | undefined): string[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  return entityTags(header).flatMap((tag) => {
    const match = /^"([0-9a-f]{1,16})-[A-Za-z0-9_-]{27}"$/.exec(tag);
    return match ? [match[1]!] : [];
  });
}

/** Returns the validator without quotes, for clients that cannot send If-Match. */
export const versionOf = (etag: string) => etag.slice(1, -1);

/** Converts a version from {@link versionOf} into its validator; accepts quotes. @returns undefined if the version is invalid */
export function etagOfVersion(text: string): string | undefined {
  const etag = `"${text.replace(/^"(.*)"$/, '$1')}"`;
  return parseStates(etag)?.length === 1 ? etag : undefined;
}

function entityTags(header: string): string[] {
  return header.match(/(?:W\/)?"[^"]*"/g) ?? [];
}

/** Redirects the caller to another URL. */
export function redirectTo(response: ServerResponse, status: 302 | 303 | 308, location: string): void {
  const headers = { 'Cache-Control': 'no-cache', 'Content-Length': '0', 'X-Content-Type-Options': 'nosniff' };
  response.writeHead(status, { ...headers, Location: location }).end();
}
