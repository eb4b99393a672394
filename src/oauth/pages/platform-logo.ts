import { readFile } from 'node:fs/promises';
import { Injectable } from '@nestjs/common';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import { Config } from '../../config/config.js';
import { Logger } from '../../http/logger.js';
import { imageType } from '../../values/images.js';

const MOST_BYTES = 262_144;
const LONGEST_WAIT_MS = 5_000;
const AGAIN_MS = 60_000;

/** An image, with the type found from its bytes. */
export interface Image {
  readonly bytes: Buffer;
  readonly type: string;
}

/**
 * The platform's logo, read once from PLATFORM_LOGO_URL and served from here. Startup does not wait for it: pages have no logo
 * until it is loaded, and a failed attempt is repeated every minute. Only images are accepted, and redirects are not followed, so
 * the address is always the one that the operator configured.
 */
@Injectable()
export class PlatformLogo implements OnModuleInit, OnModuleDestroy {
  #image: Image | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(
    private readonly config: Config,
    private readonly logger: Logger,
  ) {}

  get image(): Image | undefined {
    return this.#image;
  }

  onModuleInit(): void {
    void this.load();
  }

  onModuleDestroy(): void {
    clearTimeout(this.#again);
  }

  /** Never fails: errors go to the log. */
  async load(): Promise<void> {
    const { platformLogoUrl } = this.config;
    if (platformLogoUrl === undefined) return;
    try {
      const bytes = await bytesOf(new URL(platformLogoUrl));
      const type = imageType(bytes);
      if (type === undefined) throw new Error('it is no PNG, JPEG, WebP, GIF or SVG');
      this.#image = { bytes, type };
    } catch (error) {
      const { message, cause } = error as Error;
      const reason = (cause as Error | undefined)?.message ?? message;
      this.logger.warn({ reason }, 'PLATFORM_LOGO_URL could not be read: pages have no logo');
      this.#again = setTimeout(() => void this.load(), AGAIN_MS).unref();
    }
  }
}

async function bytesOf(url: URL): Promise<Buffer> {
  if (url.protocol === 'file:') return bounded(await readFile(url));
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
  if (!response.ok || response.body === null) throw new Error(`the answer is ${response.status}`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    if ((size += chunk.length) > MOST_BYTES) break; // leaving the loop ends the transfer
  }
  return bounded(Buffer.concat(chunks));
}

function bounded(bytes: Buffer): Buffer {
  if (bytes.length > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`);
  return bytes;
}
