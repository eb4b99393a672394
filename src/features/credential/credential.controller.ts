import { Controller, Get } from '@nestjs/common';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { accessOf, CurrentPrincipal, RequireCredential } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import { TIMESTAMP_PATTERN } from '../../values/timestamps.js';
import { Answers } from '../../http/output/openapi.js';
import { RouteTable } from '../../http/route-table.js';
import { ALL_SCOPES } from '../../auth/scopes.js';

@ApiSchema({ name: 'Endpoint' })
class Endpoint {
  @ApiProperty({ enum: ['GET', 'PUT'] })
  method: string;

  @ApiProperty({ example: '/api/public/events/{id}' })
  path: string;

  @ApiProperty({ type: String, nullable: true, description: 'null: any credential' })
  scope: string | null;

  @ApiProperty()
  allowed: boolean;
}

@ApiSchema({ name: 'Credential' })
class CredentialAnswer {
  @ApiProperty({ enum: ['api_key', 'oauth_token'] })
  type: string;

  @ApiProperty({ type: 'integer', minimum: 1 })
  user_id: number;

  @ApiProperty({ isArray: true, enum: ALL_SCOPES })
  scopes: readonly string[];

  @ApiProperty({ type: String, nullable: true })
  client_id: string | null;

  @ApiProperty({ type: String, nullable: true })
  key_id: string | null;

  @ApiProperty({ type: String, nullable: true, pattern: TIMESTAMP_PATTERN })
  expires_at: string | null;

  @ApiProperty({ pattern: TIMESTAMP_PATTERN })
  created_at: string;

  @ApiProperty({ type: [Endpoint] })
  endpoints: Endpoint[];
}

@Controller('api/public/credential')
export class CredentialController {
  constructor(private readonly routeTable: RouteTable) {}

  @Get()
  @RequireCredential()
  @Answers('What this credential is, and what it may do', CredentialAnswer)
  read(@CurrentPrincipal() principal: Principal): CredentialAnswer {
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

  /** Every route that looks at credentials, with whether this one is let through. */
  #endpointsFor(principal: Principal): Endpoint[] {
    return this.routeTable.routes.flatMap(({ method, path, handler, controller }) => {
      const access = accessOf(handler, controller);
      if (access === undefined || access === 'public') return [];
      const allowed = access === null || principal.scopes.includes(access);
      return [{ method, path: path.replace(/:(\w+)/g, '{$1}'), scope: access, allowed }];
    });
  }
}
