import { Controller, Get } from '@nestjs/common';
import { Schema } from '../../http/output/schema.js';
import { accessOf, CurrentPrincipal, RequireCredential } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import {
  BooleanField,
  EnumField,
  EnumListField,
  IdField,
  ObjectListField,
  TextField,
  TimestampField,
} from '../../http/output/fields.js';
import { RespondsWith } from '../../http/output/openapi.js';
import { RouteTable } from '../../http/route-table.js';
import { ALL_SCOPES, isPlatformScope } from '../../auth/scopes.js';
import type { Scope } from '../../auth/scopes.js';

@Schema('Endpoint')
class Endpoint {
  @EnumField<string>(['GET', 'PUT'])
  method: string;

  @TextField({ example: '/api/public/events/{id}' })
  path: string;

  @TextField({ nullable: true, description: 'null: any credential' })
  scope: string | null;

  @BooleanField({ description: 'Whether this credential has the scope' })
  allowed: boolean;
}

@Schema('Credential')
class CredentialAnswer {
  @EnumField(['api_key', 'oauth_token'])
  type: 'api_key' | 'oauth_token';

  @IdField({ description: 'The member whose data it gives access to' })
  user_id: number;

  @EnumListField(ALL_SCOPES, { description: 'Granted scopes' })
  scopes: readonly Scope[];

  @TextField({ nullable: true, description: 'The app that the token was issued to; null for a key' })
  client_id: string | null;

  @TextField({ nullable: true, description: 'The part of the key that is not secret; null for a token' })
  key_id: string | null;

  @TimestampField({ nullable: true, description: 'null if it does not expire' })
  expires_at: string | null;

  @TimestampField()
  created_at: string;

  @ObjectListField(Endpoint, { description: 'Every call that requires a credential' })
  endpoints: Endpoint[];
}

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
  getCredential(@CurrentPrincipal() principal: Principal): CredentialAnswer {
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
  #endpointsFor(principal: Principal): Endpoint[] {
    return this.routeTable.routes.flatMap(({ method, path, handler, controller }) => {
      const access = accessOf(handler, controller);
      if (access === undefined || access === 'public') return [];
      if (access !== null && isPlatformScope(access)) return [];
      const allowed = access === null || principal.scopes.includes(access);
      return [{ method, path: path.replace(/:(\w+)/g, '{$1}'), scope: access, allowed }];
    });
  }
}
