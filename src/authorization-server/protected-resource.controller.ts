import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { ALL_SCOPES } from '../auth/scopes.js';
import { SUPPORTED_DPOP_ALGORITHMS } from '../auth/www-authenticate.js';
import { UnchangingDocument } from '../http/output/responses.js';
import { OutsideApi } from '../http/pipeline/outside-api.js';
import { apiResource } from './provider/provider.js';
import { apiNameOf, Config } from '../config/config.js';

/** Names the authorization server that this API trusts, and the scopes of its tokens (RFC 9728 §3). */
@Controller('.well-known/oauth-protected-resource/api/public')
@Public()
@OutsideApi()
export class ProtectedResourceController {
  readonly #document: UnchangingDocument;

  constructor(config: Config) {
    const metadata = {
      resource: apiResource(config),
      authorization_servers: [config.publicUrl],
      scopes_supported: ALL_SCOPES,
      bearer_methods_supported: ['header'],
      resource_name: apiNameOf(config),
      dpop_signing_alg_values_supported: SUPPORTED_DPOP_ALGORITHMS,
    };
    this.#document = new UnchangingDocument(JSON.stringify(metadata), {
      'Access-Control-Allow-Origin': '*',
      'Cache-Control': 'public, max-age=300',
      'Content-Type': 'application/json; charset=utf-8',
      'X-Content-Type-Options': 'nosniff',
    });
  }

  @Get()
  read(@Req() request: Request, @Res() response: Response): void {
    this.#document.send(request, response);
  }
}
