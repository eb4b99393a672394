import { Controller, Get } from '@nestjs/common';
import { Model, nameWords } from '../../model/json-schema.js';
import { CurrentPrincipal, RequireCredential } from '../../auth/auth.decorators.js';
import { accessOf } from '../../auth/auth.guards.js';
import type { Principal } from '../../auth/principal.js';
import {
  booleanField,
  enumField,
  enumListField,
  idField,
  IN_NODE,
  objectListField,
  textField,
  timestampField,
  type ValueOf,
} from '../../model/response.js';
import { RespondsWith } from '../../http/output/openapi.js';
import { isOutsideApi } from '../../http/pipeline/outside-api.js';
import { RouteTable } from '../../http/route-table.js';
import { ALL_SCOPES, isPlatformScope } from '../../auth/scopes.js';

const Endpoint = new Model('Endpoint', {
  method: textField(IN_NODE, { pattern: '^[A-Z]+$', example: 'GET' }),
  path: textField(IN_NODE, { example: '/api/public/events/{id}' }),
  scope: textField(IN_NODE, 'Required scope; null if any credential is accepted').nullable,
  allowed: booleanField(IN_NODE, 'Whether this credential has the scope'),
});

const CredentialAnswer = new Model('Credential', {
  type: enumField(nameWords('CredentialKind', ['api_key', 'oauth_token'])),
  user_id: idField(IN_NODE, 'The member whose data the credential can access'),
  scopes: enumListField(ALL_SCOPES, IN_NODE, 'Granted scopes'),
  client_id: textField(IN_NODE, 'The app that the token was issued to; null for a key').nullable,
  key_id: textField(IN_NODE, 'The part of the key that is not secret; null for a token').nullable,
  expires_at: timestampField(IN_NODE, 'null if it does not expire').nullable,
  access_ends_at: timestampField(
    IN_NODE,
    'End of the access that the member gave; a refresh does not change it; null if it has no end. For a key, the same as expires_at',
  ).nullable,
  created_at: timestampField(),
  endpoints: objectListField(Endpoint, IN_NODE, 'All requests that require a credential'),
});

@Controller('api/public/credential')
export class CredentialController {
  constructor(private readonly routeTable: RouteTable) {}

  @Get()
  @RequireCredential()
  @RespondsWith(
    'Get the credential',
    CredentialAnswer,
    'Kind, member, expiry and allowed requests of this credential. A good first request for a new integration.',
  )
  getCredential(@CurrentPrincipal() principal: Principal): ValueOf<typeof CredentialAnswer> {
    return {
      type: principal.kind,
      user_id: principal.userId,
      scopes: principal.scopes,
      client_id: principal.clientId,
      key_id: principal.keyId,
      expires_at: principal.expiresAt,
      access_ends_at: principal.accessEndsAt,
      created_at: principal.createdAt,
      endpoints: this.routeTable.routes.flatMap(({ method, path, handler, controller }) => {
        const access = accessOf(handler, controller);
        if (access === undefined || access === 'public' || isOutsideApi(controller)) return [];
        if (access !== null && isPlatformScope(access)) return [];
        const allowed = access === null || principal.scopes.includes(access);
        return [{ method, path: path.replace(/:(\w+)/g, '{$1}'), scope: access, allowed }];
      }),
    };
  }
}
