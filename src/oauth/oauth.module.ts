import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { AccountPages } from './account-pages.js';
import { AuthorizationServer } from './authorization-server.js';
import { BrowserSessions } from './browser-sessions.js';
import { Consents } from './consents.service.js';
import { Interactions } from './interactions.js';
import { KnownClients } from './known-clients.js';
import { OauthDatabase } from './oauth-database.js';
import { PageRequests } from './page-requests.js';
import { Pages } from './pages/pages.js';
import { Refusals } from './refusals.service.js';
import { SignInForm } from './sign-in-form.js';
import { Successors } from './successors.js';
import { Userinfo } from './userinfo.js';

/** The embedded authorization server; {@link oauthRoutes} puts it in front of the API's routes. */
@Module({
  imports: [AuthModule, AccountsModule],
  providers: [
    OauthDatabase,
    Refusals,
    KnownClients,
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
