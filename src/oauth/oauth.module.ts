import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { AccountPages } from './pages/account-pages.js';
import { AuthorizationServer } from './provider/authorization-server.js';
import { BrowserSessions } from './pages/browser-sessions.js';
import { Consents } from './provider/consents.service.js';
import { Interactions } from './pages/interactions.js';
import { ClientCache } from './storage/client-cache.js';
import { OauthDatabase } from './storage/oauth-database.js';
import { PageRequests } from './pages/page-requests.js';
import { Pages } from './pages/pages.js';
import { Refusals } from './provider/refusals.service.js';
import { SignInForm } from './pages/sign-in-form.js';
import { Successors } from './token-request/successors.js';
import { Userinfo } from './userinfo.js';

/** The embedded authorization server; {@link oauthRoutes} puts it in front of the API's routes. */
@Module({
  imports: [AuthModule, AccountsModule],
  providers: [
    OauthDatabase,
    Refusals,
    ClientCache,
    Consents,
    AuthorizationServer,
    BrowserSessions,
    Pages,
    PageRequests,
    SignInForm,
    Interactions,
    AccountPages,
    Successors,
    Userinfo,
  ],
  exports: [AuthorizationServer],
})
export class OauthModule {}
