import { Module } from '@nestjs/common';
import { AccessTokens } from './access-tokens/access-tokens.js';
import { GrantUsageRecorder } from './access-tokens/grant-usage.js';
import { ApiKeyAuthenticator } from './api-keys/api-key-authenticator.js';
import { ApiKeyUsageRecorder } from './api-keys/api-key-usage.js';
import { Authentication } from './authentication.js';
import { CredentialCache } from './credential-cache.js';
import { DeveloperRequests } from './usage/developer-requests.js';
import { MemberUsageRecorder } from './usage/member-usage.js';
import { Usage } from './usage/usage.js';
import { RateLimits } from './rate-limits/rate-limits.js';
import { RevocationChannel } from './revocation-channel.js';

@Module({
  providers: [
    Authentication,
    ApiKeyAuthenticator,
    ApiKeyUsageRecorder,
    AccessTokens,
    GrantUsageRecorder,
    MemberUsageRecorder,
    Usage,
    DeveloperRequests,
    CredentialCache,
    RateLimits,
    RevocationChannel,
  ],
  exports: [
    Authentication,
    CredentialCache,
    DeveloperRequests,
    GrantUsageRecorder,
    RateLimits,
    RevocationChannel,
    Usage,
  ],
})
export class AuthModule {}
