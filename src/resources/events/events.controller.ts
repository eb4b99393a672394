import { Controller, Get, Param } from '@nestjs/common';
import { CurrentPrincipal, RequireScopes } from '../../auth/auth.decorators.js';
import type { Principal } from '../../auth/principal.js';
import type { JsonResponse } from '../../http/output/responses.js';
import {
  ID,
  PathParameter,
  RespondsWith,
  RespondsWithPage,
  RespondsWithProblems,
} from '../../http/output/openapi.js';
import { Parameters } from '../../http/input/query.js';
import { EventDetail, EventItem, EventsQuery } from './event.dto.js';
import { EventsService } from './events.service.js';

@Controller('api/public/events')
@RequireScopes('events:read')
export class EventsController {
  constructor(private readonly events: EventsService) {}

  @Get()
  @RespondsWithPage(
    'List events',
    EventItem,
    'The events that the member organizes, attends or is invited to. Other public events are not listed.',
  )
  listEvents(
    @CurrentPrincipal() { userId }: Principal,
    @Parameters() query: EventsQuery,
  ): Promise<JsonResponse> {
    return this.events.list(userId, query);
  }

  @Get(':id')
  @PathParameter('id', 'Id of the event', { ...ID, examples: [900_000_001] })
  @RespondsWith(
    'Get an event',
    EventDetail,
    'The fields of the list, and also the description, tags, full location, co-organizers, and when the member responded. If the id does not exist, or the member has no access to the event, the response is `event_not_found`.',
  )
  @RespondsWithProblems('event_not_found')
  getEvent(@CurrentPrincipal() { userId }: Principal, @Param('id') id: string): Promise<JsonResponse> {
    return this.events.read(userId, id);
  }
}
