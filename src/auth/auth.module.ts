import { Module } from '@nestjs/common';
import { Config } from '../config/config.js';
import { TokenKeys } from '../crypto/hmac.js';
import { AccessTokens } from './access-tokens.js';
import { ApiKeyAuthenticator } from './api-keys/api-key-authenticator.js';
import { ApiKeysService } from './api-keys/api-keys.service.js';
import { Authentication } from './authentication.js';
import { CredentialCache } from './credential-cache.js';
import { DeveloperRequests } from './usage/developer-requests.js';
import { Usage } from './usage/usage.js';
import { RateLimits } from './rate-limits/rate-limits.js';
import { RevocationChannel } from './revocation-channel.js';

const SERVICES = [
  Authentication,
  ApiKeyAuthenticator,
  ApiKeysService,
  AccessTokens,
  Usage,
  DeveloperRequests,
  CredentialCache,
  RateLimits,
  RevocationChannel,
  { provide: TokenKeys, inject: [Config], useFactory: ({ secrets }: Config) => new TokenKeys(secrets) },
];

@Module({ providers: SERVICES, exports: SERVICES })
export class AuthModule {}
