import { Module } from '@nestjs/common';
import { AccessTokens } from './access-tokens/access-tokens.service.js';
import { ApiKeyAuthenticator } from './api-keys/api-key-authenticator.js';
import { ApiKeyUsageRecorder } from './api-keys/api-key-usage.js';

@Module({
  providers: [ApiKeyAuthenticator, ApiKeyUsageRecorder, AccessTokens],
  exports: [ApiKeyAuthenticator, AccessTokens],
})
export class AuthModule {}
