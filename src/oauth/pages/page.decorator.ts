import { applyDecorators, SetMetadata, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '../../http/output/swagger.js';
import { Public } from '../../auth/auth.decorators.js';
import { OutsideApi } from '../../http/pipeline/outside-api.js';
import { PageFilter } from './page.filter.js';

const PAGE = 'oauth:page';

/**
 * The controller answers with pages for members, and finds out itself who is signed in. Without this its routes are closed, as
 * every route that does not say what it needs; {@link PageRoutes} stands in front of those that have it.
 */
export const Page = () =>
  applyDecorators(
    SetMetadata(PAGE, true),
    Public(),
    OutsideApi(),
    ApiExcludeController(),
    UseFilters(PageFilter),
  );

/** Tells whether {@link Page} stands on the controller. */
export function isPage(controller: object): boolean {
  return Reflect.hasMetadata(PAGE, controller);
}
