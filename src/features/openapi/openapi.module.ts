import { Module } from '@nestjs/common';
import { OpenApiController, PlatformOpenApiController } from './openapi.controller.js';
import { OpenApiDocument } from './openapi-document.js';

@Module({
  controllers: [OpenApiController, PlatformOpenApiController],
  providers: [OpenApiDocument],
  exports: [OpenApiDocument],
})
export class OpenApiModule {}
