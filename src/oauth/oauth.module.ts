import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { CalendarModule } from '../calendar/calendar.module.js';
import { AccountCalendarController } from './pages/account-calendar.controller.js';
import { AccountKeysController } from './pages/account-keys.controller.js';
import { AccountController } from './pages/account.controller.js';
import { AccountPages } from './pages/account-pages.js';
import { AuthorizationServer } from './provider/authorization-server.js';
import { BrowserSessions } from './pages/browser-sessions.js';
import { ClientDocuments } from './provider/client-documents.js';
import { Consents } from './provider/consents.js';
import { FinishedSteps } from './pages/finished-steps.js';
import { OneTimeStates } from './storage/one-time-states.js';
import { OpenidProvider } from './upstream/openid-provider.js';
import { SignOuts } from './upstream/sign-outs.js';
import { UpstreamController } from './upstream/upstream.controller.js';
import { ACCOUNT_PAGES, UpstreamSignIns } from './upstream/upstream-sign-ins.js';
import { signInControllers } from './pages/sign-in.controllers.js';
import { PasskeyCeremonies } from './passkeys/passkey-ceremonies.js';
import { PasskeyForm } from './passkeys/passkey-form.js';
import { DoneNotices } from './pages/done-notices.js';
import { SentForms } from './pages/sent-forms.js';
import { SecurityController } from './pages/security.controller.js';
import { SecurityPage } from './pages/security-page.js';
import { InteractionsController } from './pages/interactions.controller.js';
import { ClientCache } from './storage/client-cache.js';
import { OauthDatabase } from './storage/oauth-database.js';
import { LogosController } from './pages/logos.controller.js';
import { PlatformLogo } from './pages/platform-logo.js';
import { PageRoutes } from './pages/page-routes.js';
import { ProtectedResourceController } from './protected-resource.controller.js';
import { Pages } from './pages/pages.js';
import { Refusals } from './provider/refusals.js';
import { SignInForm } from './pages/sign-in-form.js';
import { Successors } from './token-request/successors.js';
import { UserinfoController } from './userinfo.controller.js';
import { OauthRoutes } from './oauth-routes.js';

/** The embedded authorization server; {@link OauthRoutes} precedes its controllers. */
@Module({
  imports: [AuthModule, AccountsModule, CalendarModule],
  controllers: [
    InteractionsController,
    ...signInControllers(ACCOUNT_PAGES),
    AccountController,
    AccountKeysController,
    AccountCalendarController,
    SecurityController,
    UserinfoController,
    ProtectedResourceController,
    LogosController,
    UpstreamController,
  ],
  providers: [
    OauthDatabase,
    Refusals,
    ClientCache,
    Consents,
    AuthorizationServer,
    BrowserSessions,
    AccountPages,
    Pages,
    PlatformLogo,
    ClientDocuments,
    PageRoutes,
    SignInForm,
    FinishedSteps,
    OneTimeStates,
    DoneNotices,
    SentForms,
    PasskeyCeremonies,
    PasskeyForm,
    SecurityPage,
    OpenidProvider,
    UpstreamSignIns,
    SignOuts,
    Successors,
    OauthRoutes,
  ],
  exports: [
    AccountPages,
    AuthorizationServer,
    ClientCache,
    OauthDatabase,
    OauthRoutes,
    Pages,
    PasskeyCeremonies,
    Refusals,
    SentForms,
  ],
})
export class OauthModule {}
