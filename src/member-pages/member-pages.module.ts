import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { AuthorizationServerModule } from '../authorization-server/authorization-server.module.js';
import { CalendarModule } from '../calendar/calendar.module.js';
import { ClientsModule } from '../clients/clients.module.js';
import { FederationModule } from '../federation/federation.module.js';
import { PagesModule } from './rendering/pages.module.js';
import { AccountCalendarController } from './account/account-calendar.controller.js';
import { AccountController } from './account/account.controller.js';
import { AccountPages } from './account/account-pages.js';
import { BrowserSessions } from './sign-in/browser-sessions.js';
import { FinishedSteps } from './interaction/finished-steps.js';
import { UpstreamController } from './interaction/upstream.controller.js';
import { ACCOUNT_PAGES } from '../federation/sign-in-pages.js';
import { signInControllers } from './account/sign-in.controllers.js';
import { PasskeyCeremonies } from './sign-in/passkey-ceremonies.js';
import { SentForms } from './account/sent-forms.js';
import { SecurityController } from './account/security.controller.js';
import { InteractionsController } from './interaction/interactions.controller.js';
import { LogosController } from './rendering/logos.controller.js';
import { PageRoutes } from './requests/page-routes.js';
import { SignInForms } from './sign-in/sign-in-forms.js';

/** The pages for members; {@link PageRoutes} precedes their controllers. */
@Module({
  imports: [
    AuthModule,
    AccountsModule,
    CalendarModule,
    ClientsModule,
    AuthorizationServerModule,
    FederationModule,
    PagesModule,
  ],
  controllers: [
    InteractionsController,
    ...signInControllers(ACCOUNT_PAGES),
    AccountController,
    AccountCalendarController,
    SecurityController,
    LogosController,
    UpstreamController,
  ],
  providers: [
    BrowserSessions,
    AccountPages,
    PageRoutes,
    SignInForms,
    FinishedSteps,
    SentForms,
    PasskeyCeremonies,
  ],
  exports: [
    AccountPages,
    AuthorizationServerModule,
    BrowserSessions,
    PasskeyCeremonies,
    SentForms,
    SignInForms,
  ],
})
export class MemberPagesModule {}
