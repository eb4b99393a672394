import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { OauthModule } from './oauth.module.js';
import { DeveloperController } from './pages/developer.controller.js';

/** Where members register apps and make keys of their own; without DEVELOPER_CONSOLE there is nothing of it. */
@Module({ imports: [AuthModule, AccountsModule, OauthModule], controllers: [DeveloperController] })
export class DeveloperModule {}
