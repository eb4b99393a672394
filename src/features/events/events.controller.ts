import { Controller, Get, Param, Req } from '@nestjs/common';
import type { Request } from 'express';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { RespondsWith, RespondsWithPage, RespondsWithProblems } from '../../http/output/openapi.js';
import { Parameters } from '../../http/input/query.js';
import { EventDetail, EventItem, EventsQuery } from './event.dto.js';
import { EventsService } from './events.service.js';

@Controller('api/public/events')
@RequireScopes('events:read')
export class EventsController {
  constructor(private readonly events: EventsService) {}

  @Get()
  @RespondsWithPage('The events that the member organises, attends or is invited to', EventItem)
  list(
    @CurrentPrincipal() { userId }: Principal,
    @Req() request: Request,
    @Parameters() query: EventsQuery,
  ): Promise<JsonResponse> {
    return this.events.list(userId, request.context.path, query);
  }

  @Get(':id')
  @RespondsWith('One event', EventDetail)
  @RespondsWithProblems('event_not_found')
  read(@CurrentPrincipal() { userId }: Principal, @Param('id') id: string): Promise<JsonResponse> {
    return this.events.read(userId, id);
  }
}
