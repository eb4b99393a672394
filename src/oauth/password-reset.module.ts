import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { OauthModule } from './oauth.module.js';
import { PasswordResetController } from './pages/password-reset.controller.js';
import { PasswordResets } from './pages/password-resets.js';

/** The pages where members set a new password by mail; they do not exist where this server sends none. */
@Module({
  imports: [AccountsModule, OauthModule],
  controllers: [PasswordResetController],
  providers: [PasswordResets],
})
export class PasswordResetModule {}
