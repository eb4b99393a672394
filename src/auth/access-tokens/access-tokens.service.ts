import { Inject, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG } from '../../config/config.js';
import type { Config } from '../../config/config.js';
import { invalidCredentials } from '../challenges.js';
import type { Principal } from '../principal.js';

/** OAuth access tokens → Principal. Until the authorization server issues some, none is valid. */
@Injectable()
export class AccessTokens {
  constructor(@Inject(CONFIG) private readonly config: Config) {}

  /** @throws Problem invalid_credentials */
  authenticate(
    _credential: { scheme: 'Bearer' | 'DPoP'; token: string },
    request: Request,
  ): Promise<Principal> {
    request.context.refusal = 'unknown token';
    throw invalidCredentials(this.config.publicUrl, 'token');
  }
}
