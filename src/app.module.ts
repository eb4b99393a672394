import { Module, type DynamicModule } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AuthModule } from './auth/auth.module.js';
import { CredentialsGuard, ScopesGuard } from './auth/auth.guards.js';
import { CalendarModule } from './calendar/calendar.module.js';
import { DatabaseModule } from './database/database.module.js';
import { FeaturesModule } from './features/features.module.js';
import { McpModule } from './mcp/mcp.module.js';
import { OpenApiModule } from './openapi/openapi.module.js';
import { DemoController } from './site/demo.controller.js';
import { MemberPagesModule } from './member-pages/member-pages.module.js';
import { AcceptGuard } from './http/pipeline/accept.guard.js';
import { HttpModule } from './http/http.module.js';
import { RuntimeModule } from './runtime/runtime.module.js';
import { QueryGuard } from './http/input/query.js';
import { PlatformModule } from './platform/platform.module.js';
import { OperationsModule } from './operations/operations.module.js';
import { PersonalDataModule } from './personal-data/personal-data.module.js';
import { SiteModule } from './site/site.module.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';
import { Config } from './config/config.js';

/** All modules. The guards are in the order of checks in docs/api-contract.md §1. */
@Module({})
export class AppModule {
  static with(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [
        {
          module: class ConfigModule {},
          global: true,
          providers: [{ provide: Config, useValue: config }],
          exports: [Config],
        },
        DatabaseModule,
        RuntimeModule,
        HttpModule,
        AuthModule,
        FeaturesModule,
        OpenApiModule,
        ...(config.assistants ? [McpModule] : []),
        CalendarModule,
        PlatformModule,
        WebhooksModule,
        OperationsModule,
        // The pages come last: Express matches routes in this order, and few requests are for pages.
        MemberPagesModule.with(config),
        PersonalDataModule,
        SiteModule,
      ],
      controllers: config.seedDemo ? [DemoController] : [],
      providers: [
        { provide: APP_GUARD, useClass: AcceptGuard },
        { provide: APP_GUARD, useClass: CredentialsGuard },
        { provide: APP_GUARD, useClass: ScopesGuard },
        { provide: APP_GUARD, useClass: QueryGuard },
      ],
    };
  }
}
