import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { UsersService } from '../accounts/users.service.js';
import { SignInMethods } from '../accounts/sign-in/sign-in-methods.js';
import { AuditTrail } from '../audit/audit-trail.js';
import { ApiKeysService } from '../auth/api-keys/api-keys.service.js';
import { ClientsService } from '../clients/clients.service.js';
import { ConnectedApps } from '../clients/connected-apps.js';
import { SigningKeysService } from '../clients/signing-keys.service.js';
import { Config } from '../config/config.js';
import { WebhookSecrets } from '../webhooks/webhook-secrets.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';

const SERVICES = [
  ApiKeysService,
  AuditTrail,
  ClientsService,
  ConnectedApps,
  SigningKeysService,
  UsersService,
  SignInMethods,
  WebhookSecrets,
  WebhooksService,
];

/** The services that commands use, on the command's own connection; nothing of what a server starts. */
@Module({})
export class CliModule {
  static with(config: Config, dataSource: DataSource): DynamicModule {
    return {
      module: CliModule,
      providers: [
        { provide: Config, useValue: config },
        { provide: DataSource, useValue: dataSource },
        ...SERVICES,
      ],
    };
  }
}
