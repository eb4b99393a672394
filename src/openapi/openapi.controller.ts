import { Controller, Get } from '@nestjs/common';
import { Public } from '../auth/auth.decorators.js';
import type { JsonResponse } from '../http/output/responses.js';
import { RespondsWith } from '../http/output/openapi.js';
import { OpenApiDocument } from './openapi-document.js';

@Controller('api')
@Public()
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('public/openapi.json')
  @RespondsWith(
    'Get this document',
    { type: 'object' },
    'The OpenAPI 3.1 document of the running server, for client generators and test tools.',
  )
  getOpenApi(): JsonResponse {
    return this.document.answer('members');
  }

  @Get('platform/openapi.json')
  @RespondsWith(
    'Get the platform’s document',
    { type: 'object' },
    'The OpenAPI 3.1 document of the requests for the platform’s backend.',
  )
  getPlatformOpenApi(): JsonResponse {
    return this.document.answer('platform');
  }
}
