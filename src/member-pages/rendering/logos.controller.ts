import { createReadStream } from 'node:fs';
import { Controller, Get, Injectable, Req } from '@nestjs/common';
import type { Request } from 'express';
import { Public } from '../../auth/auth.decorators.js';
import { Config } from '../../config/config.js';
import { USER_AGENT } from '../../config/version.js';
import { Database } from '../../database/database.js';
import { queryOf } from '../../http/input/query.js';
import { Problem } from '../../http/output/problems.js';
import { UnchangingDocument } from '../../http/output/responses.js';
import { Periodic } from '../../runtime/periodic-work.js';
import { LimitsByAddress, OutsideApi } from '../../http/pipeline/outside-api.js';
import { imageType, pixelImageType } from '../../values/images.js';
import { isStorable } from '../../values/string-rules.js';

export const PLATFORM_LOGO_PATH = '/logos/platform';

const MAX_BYTES = 262_144;
const MAX_WAIT_MS = 5_000;
const AGAIN_MS = 60_000;

interface Image {
  readonly bytes: Buffer;
  readonly type: string;
}

/** Loads the platform's logo from PLATFORM_LOGO_URL, and retries every minute after a failure. Accepts only images, and no redirects. */
@Injectable()
export class PlatformLogo {
  image: Image | undefined;

  constructor(private readonly config: Config) {}

  @Periodic({
    work: 'platform_logo',
    everyMs: AGAIN_MS,
    failure: 'PLATFORM_LOGO_URL could not be read: pages have no logo',
  })
  async load(): Promise<void> {
    const { platformLogoUrl } = this.config;
    if (platformLogoUrl === undefined || this.image) return;
    try {
      const bytes = await readBytes(new URL(platformLogoUrl));
      const type = imageType(bytes);
      if (type === undefined) throw new Error('the logo is not a PNG, JPEG, WebP, GIF or SVG: convert it');
      this.image = { bytes, type };
    } catch (error) {
      const { message, cause } = error as Error;
      throw new Error((cause as Error | undefined)?.message ?? message, { cause: error });
    }
  }
}

async function readBytes(url: URL): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of url.protocol === 'file:' ? createReadStream(url) : await fetched(url)) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error(`the logo has more than ${MAX_BYTES} bytes: make it smaller`); // the error ends the transfer
  }
  return Buffer.concat(chunks);
}

async function fetched(url: URL): Promise<AsyncIterable<Uint8Array>> {
  const response = await fetch(url, {
    headers: { 'User-Agent': USER_AGENT },
    redirect: 'error',
    signal: AbortSignal.timeout(MAX_WAIT_MS),
  });
  if (!response.ok || response.body === null) throw new Error(`the server responded with ${response.status}`);
  return response.body;
}

const FIND_LOGO = 'SELECT logo FROM oauth_clients WHERE id = $1 AND logo IS NOT NULL AND disabled_at IS NULL';

/** Images for members' pages, which load no external content: logos of the platform and of registered clients. */
@Controller('logos')
@Public()
@OutsideApi()
@LimitsByAddress()
export class LogosController {
  constructor(
    private readonly platform: PlatformLogo,
    private readonly database: Database,
  ) {}

  @Get('platform')
  ofPlatform(): UnchangingDocument {
    const { image } = this.platform;
    if (!image) throw new Problem('not_found');
    return makeDocument(image);
  }

  @Get('client')
  async ofClient(@Req() request: Request): Promise<UnchangingDocument> {
    const [clientId, another] = queryOf(request).getAll('client_id');
    if (clientId === undefined || another !== undefined || clientId.length > 100 || !isStorable(clientId))
      throw new Problem('not_found');
    const [found] = await this.database.prepared<{ logo: Buffer }>(FIND_LOGO, [clientId]);
    const type = found && pixelImageType(found.logo);
    if (type === undefined) throw new Problem('not_found');
    return makeDocument({ bytes: found!.logo, type });
  }
}

/** Makes the response with an image; its headers prevent an SVG from running scripts or loading content. */
export function makeDocument({ bytes, type }: Image): UnchangingDocument {
  return new UnchangingDocument(bytes, {
    'Content-Type': type,
    'Content-Security-Policy':
      "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'public, max-age=300',
  });
}
