import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { ClientsModule } from '../clients/clients.module.js';
import { ClientCache } from './adapters/client-cache.js';
import { ClientDocuments } from './adapters/client-documents.js';
import { ClientSecrets } from './adapters/client-secrets.js';
import { AuthorizationServer } from './authorization-server.js';
import { BackChannelLogout } from './back-channel-logout.js';
import { Rejections } from './failures/rejections.js';
import { Middleware } from './middleware.js';
import { OauthRoutes } from './oauth-routes.js';
import { ProtectedResourceController } from './protected-resource.controller.js';
import { Consents } from './requests/consents.js';
import { OauthDatabase } from './requests/oauth-database.js';
import { OneTimeStates } from './adapters/state.adapter.js';
import { RefreshGracePeriod } from './requests/kept-response.js';
import { UserinfoController } from './userinfo.controller.js';

const SERVICES = [
  AuthorizationServer,
  BackChannelLogout,
  ClientCache,
  ClientDocuments,
  ClientSecrets,
  Consents,
  Middleware,
  OauthDatabase,
  OauthRoutes,
  OneTimeStates,
  Rejections,
  RefreshGracePeriod,
];

/** The embedded authorization server. Other modules implement the abstract classes in `ports.ts`. */
@Module({
  imports: [AccountsModule, AuthModule, ClientsModule],
  controllers: [UserinfoController, ProtectedResourceController],
  providers: SERVICES,
  exports: SERVICES,
})
export class AuthorizationServerModule {}
