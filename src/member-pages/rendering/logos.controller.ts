import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../../auth/auth.decorators.js';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/output/problems.js';
import { UnchangingDocument } from '../../http/output/unchanging-document.js';
import { OutsideApi } from '../../http/pipeline/outside-api.js';
import { pixelImageType } from '../../values/images.js';
import { isStorable } from '../../values/string-rules.js';
import { PlatformLogo, type Image } from './platform-logo.js';

const FIND_LOGO = 'SELECT logo FROM oauth_clients WHERE id = $1 AND logo IS NOT NULL AND disabled_at IS NULL';

/** Images for members' pages, which load nothing from elsewhere: the platform's logo and those of registered clients. */
@Controller('logos')
@Public()
@OutsideApi()
export class LogosController {
  constructor(
    private readonly platform: PlatformLogo,
    private readonly database: Database,
  ) {}

  @Get('platform')
  ofPlatform(@Req() request: Request, @Res() response: Response): void {
    const { image } = this.platform;
    if (!image) throw new Problem('not_found');
    send(request, response, image);
  }

  @Get('client')
  async ofClient(@Req() request: Request, @Res() response: Response): Promise<void> {
    const [clientId, another] = new URLSearchParams(request.url.split('?')[1]).getAll('client_id');
    if (clientId === undefined || another !== undefined || clientId.length > 100 || !isStorable(clientId))
      throw new Problem('not_found');
    const [found] = await this.database.prepared<{ logo: Buffer }>(FIND_LOGO, [clientId]);
    const type = found && pixelImageType(found.logo);
    if (type === undefined) throw new Problem('not_found');
    send(request, response, { bytes: found!.logo, type });
  }
}

/** An SVG image that is opened directly can run no script and load nothing. */
function send(request: Request, response: Response, { bytes, type }: Image): void {
  new UnchangingDocument(bytes, {
    'Content-Type': type,
    'Content-Security-Policy':
      "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'public, max-age=300',
  }).send(request, response);
}
