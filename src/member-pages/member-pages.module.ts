import { Module, type DynamicModule } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { AuthorizationServerModule } from '../authorization-server/authorization-server.module.js';
import { ShownPages } from '../authorization-server/ports.js';
import { CalendarModule } from '../calendar/calendar.module.js';
import { ClientsModule } from '../clients/clients.module.js';
import type { Config } from '../config/config.js';
import { FederationModule } from '../federation/federation.module.js';
import { ACCOUNT_PAGES, DEVELOPER_PAGES } from '../federation/upstream-sign-ins.js';
import { LayoutModule } from '../layout/layout.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { AccountController } from './account/account.controller.js';
import { AccountPages, SentForms } from './account/account-pages.js';
import { SecurityController } from './account/security.controller.js';
import { signInController } from './account/sign-in.controllers.js';
import { DeveloperReviewController } from './developer/developer-review.controller.js';
import { DeveloperWebhooksController } from './developer/developer-webhooks.controller.js';
import { DeveloperController } from './developer/developer.controller.js';
import { InteractionsController } from './interaction/interactions.controller.js';
import { UpstreamController } from './interaction/upstream.controller.js';
import { NoticeChoices } from './notices/notice-choices.js';
import { NoticeEmails } from './notices/notice-emails.js';
import { UnsubscribeController } from './notices/unsubscribe.controller.js';
import { PasswordResetController, PasswordResets } from './password-reset/password-resets.js';
import { LogosController, PlatformLogo } from './rendering/logos.controller.js';
import { Pages, resetsPasswords } from './rendering/pages.js';
import { PageRoutes } from './requests/page-requests.js';
import { PasskeyCeremonies } from './sign-in/passkey-ceremonies.js';
import { BrowserSessions, SignInForms } from './sign-in/sign-in-steps.js';

const SERVICES = [
  AccountPages,
  BrowserSessions,
  NoticeChoices,
  NoticeEmails,
  PageRoutes,
  Pages,
  PasskeyCeremonies,
  PasswordResets,
  PlatformLogo,
  SentForms,
  SignInForms,
  { provide: ShownPages, useExisting: Pages },
];

/** Pages for members; {@link PageRoutes} runs before their controllers. Global, since the authorization server needs {@link ShownPages}. */
@Module({
  imports: [
    AuthModule,
    AccountsModule,
    CalendarModule,
    ClientsModule,
    AuthorizationServerModule,
    FederationModule,
    LayoutModule,
    WebhooksModule,
  ],
  providers: SERVICES,
  exports: [...SERVICES, AuthorizationServerModule],
})
export class MemberPagesModule {
  static with(config: Config): DynamicModule {
    return {
      module: MemberPagesModule,
      global: true,
      controllers: [
        InteractionsController,
        ...ACCOUNT_PAGES.map(signInController),
        AccountController,
        SecurityController,
        LogosController,
        UpstreamController,
        ...(config.mail ? [UnsubscribeController] : []),
        ...(resetsPasswords(config) ? [PasswordResetController] : []),
        ...(config.developerConsole
          ? [
              ...DEVELOPER_PAGES.map(signInController),
              DeveloperController,
              DeveloperReviewController,
              DeveloperWebhooksController,
            ]
          : []),
      ],
    };
  }
}
