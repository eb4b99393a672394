import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { RespondsWith } from '../../http/output/openapi.js';
import { OpenApiDocument } from './openapi-document.js';

/** The description of the API for programs. */
@Controller('api/public')
@Public()
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('openapi.json')
  @RespondsWith(
    'Get this document',
    { type: 'object' },
    'The OpenAPI 3.1 document of the running server, for client generators and test tools.',
  )
  getOpenApi(): JsonResponse {
    return this.document.answer();
  }
}

/** The same for the platform's backend. */
@Controller('api/platform')
@Public()
export class PlatformOpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('openapi.json')
  @RespondsWith(
    'Get the platform’s document',
    { type: 'object' },
    'The OpenAPI 3.1 document of the calls for the platform’s backend.',
  )
  getPlatformOpenApi(): JsonResponse {
    return this.document.platformAnswer();
  }
}
