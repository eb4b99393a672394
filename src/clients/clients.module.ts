import { Module } from '@nestjs/common';
import { AccessEnds } from './access-ends.js';
import { ClientsService } from './clients.service.js';
import { ConnectedApps } from './connected-apps.js';
import { SigningKeysService } from './signing-keys.service.js';

@Module({
  providers: [AccessEnds, ClientsService, ConnectedApps, SigningKeysService],
  exports: [AccessEnds, ClientsService, ConnectedApps, SigningKeysService],
})
export class ClientsModule {}
