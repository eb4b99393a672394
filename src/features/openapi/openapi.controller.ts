import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import type { JsonResponse } from '../../http/output/json-response.js';
import { Answers } from '../../http/output/openapi.js';
import { OpenApiDocument } from './openapi-document.js';

@Controller('api/public/openapi.json')
@Public()
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get()
  @Answers('This document', { schema: { type: 'object' }, models: [] })
  read(): JsonResponse {
    return this.document.answer;
  }
}
