import { createReadStream } from 'node:fs';
import { Injectable } from '@nestjs/common';
import { Config } from '../../config/config.js';
import { Periodic } from '../../http/periodic-work.js';
import { imageType } from '../../values/images.js';

export const PLATFORM_LOGO_PATH = '/logos/platform';

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
export class PlatformLogo {
  #image: Image | undefined;

  constructor(private readonly config: Config) {}

  get image(): Image | undefined {
    return this.#image;
  }

  /** Loads it, unless it is loaded. @throws Error that says what is wrong with it */
  @Periodic({
    work: 'platform_logo',
    everyMs: AGAIN_MS,
    failure: 'PLATFORM_LOGO_URL could not be read: pages have no logo',
  })
  async load(): Promise<void> {
    const { platformLogoUrl } = this.config;
    if (platformLogoUrl === undefined || this.#image) return;
    try {
      const bytes = await bytesOf(new URL(platformLogoUrl));
      const type = imageType(bytes);
      if (type === undefined) throw new Error('it is no PNG, JPEG, WebP, GIF or SVG');
      this.#image = { bytes, type };
    } catch (error) {
      const { message, cause } = error as Error;
      throw new Error((cause as Error | undefined)?.message ?? message, { cause: error });
    }
  }
}

async function bytesOf(url: URL): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of url.protocol === 'file:' ? createReadStream(url) : await fetched(url)) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`); // which ends the transfer
  }
  return Buffer.concat(chunks);
}

async function fetched(url: URL): Promise<AsyncIterable<Uint8Array>> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
  if (!response.ok || response.body === null) throw new Error(`the answer is ${response.status}`);
  return response.body;
}
