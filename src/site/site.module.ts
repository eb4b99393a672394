import { Module } from '@nestjs/common';
import { OpenApiModule } from '../openapi/openapi.module.js';
import { LayoutModule } from '../layout/layout.module.js';
import { DocsController } from './docs.controller.js';
import { FrontController } from './front.controller.js';
import { OperationsModule } from '../operations/operations.module.js';
import { PackagesController } from './packages.controller.js';
import { Site } from './site.js';
import { ProblemPage } from './problem-page.js';

/** The public pages: front page, reference with guides, client packages, and error pages. */
@Module({
  imports: [LayoutModule, OpenApiModule, OperationsModule],
  controllers: [FrontController, DocsController, PackagesController],
  providers: [Site, ProblemPage],
})
export class SiteModule {}
