import { Global, Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { AuthModule } from '../auth/auth.module.js';
import { AuthorizationServerModule } from '../authorization-server/authorization-server.module.js';
import { UpstreamSignOut } from '../authorization-server/ports.js';
import { ClientsModule } from '../clients/clients.module.js';
import { OpenidProvider } from './openid-provider.js';
import { SignOuts } from './sign-outs.js';
import { UpstreamSignIns } from './upstream-sign-ins.js';

const SERVICES = [
  OpenidProvider,
  SignOuts,
  UpstreamSignIns,
  { provide: UpstreamSignOut, useExisting: SignOuts },
];

/** The external identity provider. Global, since the authorization server needs its {@link UpstreamSignOut}. */
@Global()
@Module({
  imports: [AuthModule, AccountsModule, ClientsModule, AuthorizationServerModule],
  providers: SERVICES,
  exports: SERVICES,
})
export class FederationModule {}
