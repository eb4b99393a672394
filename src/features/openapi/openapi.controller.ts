import { Controller, Get } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import type { Answer } from '../../http/answer.js';
import { Answers } from '../../http/openapi.js';
import { OpenApiDocument } from './openapi-document.js';

@Controller('api/public/openapi.json')
@Public()
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get()
  @Answers('This document', { schema: { type: 'object' }, models: [] })
  read(): Answer {
    return this.document.answer;
  }
}
