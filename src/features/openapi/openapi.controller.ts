import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { RespondsWith } from '../../http/output/openapi.js';
import { OpenApiDocument } from './openapi-document.js';

@Controller('api/public/openapi.json')
@Public()
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get()
  @RespondsWith('This document', { schema: { type: 'object' }, models: [] })
  read(): JsonResponse {
    return this.document.answer;
  }
}
