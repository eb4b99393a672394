import { Global, Module } from '@nestjs/common';
import { ShownPages } from '../../authorization-server/ports/shown-pages.js';
import { LayoutModule } from '../../layout/layout.module.js';
import { Pages } from './pages.js';
import { PlatformLogo } from './platform-logo.js';

/** How pages are made. Global, since the authorization server below it needs its {@link ShownPages}. */
@Global()
@Module({
  imports: [LayoutModule],
  providers: [Pages, PlatformLogo, { provide: ShownPages, useExisting: Pages }],
  exports: [Pages, PlatformLogo, ShownPages],
})
export class PagesModule {}
