import { applyDecorators, SetMetadata, UseFilters } from '@nestjs/common';
import { Public } from '../../auth/auth.decorators.js';
import { OutsideApi } from '../../http/pipeline/outside-api.js';
import { PageFilter } from './page.filter.js';

const PAGE = 'oauth:page';

/**
 * Marks a controller that serves pages for members and determines itself who is signed in. Without this, its routes are closed,
 * like every route that does not declare its access; {@link PageRoutes} precedes those that have it.
 */
export const ServesPages = () =>
  applyDecorators(SetMetadata(PAGE, true), Public(), OutsideApi(), UseFilters(PageFilter));

/** Tells whether a controller is marked with {@link ServesPages}. */
export function servesPages(controller: object): boolean {
  return Reflect.hasMetadata(PAGE, controller);
}
