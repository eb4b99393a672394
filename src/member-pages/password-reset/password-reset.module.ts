import { Module } from '@nestjs/common';
import { AccountsModule } from '../../accounts/accounts.module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { MemberPagesModule } from '../member-pages.module.js';
import { PasswordResetController } from './password-reset.controller.js';
import { PasswordResets } from './password-resets.js';

/** The password reset pages; they do not exist if this server sends no emails. */
@Module({
  imports: [AuthModule, AccountsModule, MemberPagesModule],
  controllers: [PasswordResetController],
  providers: [PasswordResets],
})
export class PasswordResetModule {}
