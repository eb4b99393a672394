import { Module } from '@nestjs/common';
import { AppTesters } from './app-testers.js';
import { ClientsService } from './clients.service.js';
import { ConnectedApps } from './connected-apps.js';
import { ClientReviews } from './reviews.js';
import { SigningKeysService } from './signing-keys.service.js';

@Module({
  providers: [AppTesters, ClientReviews, ClientsService, ConnectedApps, SigningKeysService],
  exports: [AppTesters, ClientReviews, ClientsService, ConnectedApps, SigningKeysService],
})
export class ClientsModule {}
