import { Module } from '@nestjs/common';
import { OpenApiModule } from '../features/openapi/openapi.module.js';
import { DocsController } from './docs.controller.js';
import { FrontController } from './front.controller.js';
import { Site } from './site.js';
import { UnknownPage } from './unknown-page.js';

/** What a stranger sees: the front page, the reference with the guides, and a page where nothing is. */
@Module({
  imports: [OpenApiModule],
  controllers: [FrontController, DocsController],
  providers: [Site, UnknownPage],
})
export class SiteModule {}
