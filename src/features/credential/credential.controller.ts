import { Controller, Get } from '@nestjs/common';
import { Model } from '../../http/output/schema.js';
import { accessOf, CurrentPrincipal, RequireCredential } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import {
  booleanField,
  enumField,
  enumListField,
  idField,
  objectListField,
  textField,
  timestampField,
  type ValueOf,
} from '../../http/output/fields.js';
import { RespondsWith } from '../../http/output/openapi.js';
import { RouteTable } from '../../http/route-table.js';
import { ALL_SCOPES, isPlatformScope } from '../../auth/scopes.js';

const Endpoint = new Model('Endpoint', {
  method: enumField<string>(['GET', 'PUT']),
  path: textField({ example: '/api/public/events/{id}' }),
  scope: textField({ nullable: true, description: 'null: any credential' }),
  allowed: booleanField({ description: 'Whether this credential has the scope' }),
});

const CredentialAnswer = new Model('Credential', {
  type: enumField(['api_key', 'oauth_token']),
  user_id: idField({ description: 'The member whose data it gives access to' }),
  scopes: enumListField(ALL_SCOPES, { description: 'Granted scopes' }),
  client_id: textField({
    nullable: true,
    description: 'The app that the token was issued to; null for a key',
  }),
  key_id: textField({
    nullable: true,
    description: 'The part of the key that is not secret; null for a token',
  }),
  expires_at: timestampField({ nullable: true, description: 'null if it does not expire' }),
  created_at: timestampField(),
  endpoints: objectListField(Endpoint, { description: 'Every call that requires a credential' }),
});

@Controller('api/public/credential')
export class CredentialController {
  constructor(private readonly routeTable: RouteTable) {}

  @Get()
  @RequireCredential()
  @RespondsWith(
    'Get the credential',
    CredentialAnswer,
    'What kind of credential this is, whose it is, when it expires, and which calls it may make. A good first call for a new integration.',
  )
  getCredential(@CurrentPrincipal() principal: Principal): ValueOf<typeof CredentialAnswer> {
    return {
      type: principal.kind,
      user_id: principal.userId,
      scopes: principal.scopes,
      client_id: principal.clientId,
      key_id: principal.keyId,
      expires_at: principal.expiresAt,
      created_at: principal.createdAt,
      endpoints: this.#endpointsFor(principal),
    };
  }

  /** Every route that takes a member's credential, and whether this credential opens it. */
  #endpointsFor(principal: Principal): ValueOf<typeof Endpoint>[] {
    return this.routeTable.routes.flatMap(({ method, path, handler, controller }) => {
      const access = accessOf(handler, controller);
      if (access === undefined || access === 'public') return [];
      if (access !== null && isPlatformScope(access)) return [];
      const allowed = access === null || principal.scopes.includes(access);
      return [{ method, path: path.replace(/:(\w+)/g, '{$1}'), scope: access, allowed }];
    });
  }
}
