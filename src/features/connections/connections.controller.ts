import { Controller, Get } from '@nestjs/common';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/responses.js';
import { RespondsWithPage } from '../../http/output/openapi.js';
import { Parameters } from '../../http/input/query.js';
import { Paging } from '../../http/paging.js';
import { ConnectionItem, CONNECTIONS, ConnectionsQuery } from './connection.dto.js';

@Controller('api/public/connections')
@RequireScopes('connections:read')
export class ConnectionsController {
  constructor(private readonly paging: Paging) {}

  @Get()
  @RespondsWithPage(
    'List connections',
    ConnectionItem,
    'The people whom the member is connected with; with `status`, also pending requests. Of each person, the list has only what everybody may see.',
  )
  listConnections(
    @CurrentPrincipal() { userId }: Principal,
    @Parameters() query: ConnectionsQuery,
  ): Promise<JsonResponse> {
    return this.paging.page(CONNECTIONS, userId, '/api/public/connections', query, { recent: true });
  }
}
