import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { OauthModule } from './oauth.module.js';
import { DeveloperClientsController } from './pages/developer/developer-clients.controller.js';
import { DeveloperKeysController } from './pages/developer/developer-keys.controller.js';
import { DeveloperPages } from './pages/developer/developer-pages.js';
import { DeveloperController } from './pages/developer/developer.controller.js';
import { signInControllers } from './pages/sign-in.controllers.js';
import { DEVELOPER_PAGES } from './upstream/upstream-sign-ins.js';

/** The pages on which members register apps and create their own keys; they exist only with DEVELOPER_CONSOLE. */
@Module({
  imports: [AuthModule, AccountsModule, OauthModule],
  controllers: [
    ...signInControllers(DEVELOPER_PAGES),
    DeveloperController,
    DeveloperClientsController,
    DeveloperKeysController,
  ],
  providers: [DeveloperPages],
})
export class DeveloperModule {}
