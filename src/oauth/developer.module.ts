import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { OauthModule } from './oauth.module.js';
import { DeveloperController } from './pages/developer.controller.js';

/** The pages where members register apps and make keys of their own; without DEVELOPER_CONSOLE they do not exist. */
@Module({ imports: [AuthModule, AccountsModule, OauthModule], controllers: [DeveloperController] })
export class DeveloperModule {}
