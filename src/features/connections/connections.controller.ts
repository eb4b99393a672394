import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { Answer } from '../../http/answer.js';
import { AnswersList } from '../../http/openapi.js';
import { AcceptsQuery, Parameters } from '../../http/query.js';
import { ConnectionItem, ConnectionsQuery } from './connection.dto.js';
import { ConnectionsService } from './connections.service.js';

@Controller('api/public/connections')
@RequireScopes('connections:read')
export class ConnectionsController {
  constructor(private readonly connections: ConnectionsService) {}

  @Get()
  @AcceptsQuery(ConnectionsQuery)
  @AnswersList('The people whom the member is connected with', ConnectionItem)
  list(
    @CurrentPrincipal() { userId }: Principal,
    @Req() request: Request,
    @Parameters() query: ConnectionsQuery,
  ): Promise<Answer> {
    return this.connections.list(userId, request.context.path, query);
  }
}
