import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { OauthModule } from './oauth.module.js';
import { PasswordResetController } from './pages/password-reset.controller.js';
import { PasswordResets } from './pages/password-resets.js';

/** The password reset pages; they do not exist if this server sends no emails. */
@Module({
  imports: [AccountsModule, OauthModule],
  controllers: [PasswordResetController],
  providers: [PasswordResets],
})
export class PasswordResetModule {}
