import { Module } from '@nestjs/common';
import { AccountsModule } from '../../accounts/accounts.module.js';
import { AuthModule } from '../../auth/auth.module.js';
import { ClientsModule } from '../../clients/clients.module.js';
import { MemberPagesModule } from '../member-pages.module.js';
import { DeveloperClientsController } from './developer-clients.controller.js';
import { DeveloperKeysController } from './developer-keys.controller.js';
import { DeveloperController } from './developer.controller.js';
import { signInControllers } from '../account/sign-in.controllers.js';
import { DEVELOPER_PAGES } from '../../federation/sign-in-pages.js';

/** The pages on which members register apps and create their own keys; they exist only with DEVELOPER_CONSOLE. */
@Module({
  imports: [AuthModule, AccountsModule, ClientsModule, MemberPagesModule],
  controllers: [
    ...signInControllers(DEVELOPER_PAGES),
    DeveloperController,
    DeveloperClientsController,
    DeveloperKeysController,
  ],
})
export class DeveloperModule {}
