import { SetMetadata } from '@nestjs/common';

const OUTSIDE_API = 'http:outside-api';

/** Marks a controller outside the JSON API: guards do not check `Accept` and the query. Its routes must still declare their access. */
export const OutsideApi = () => SetMetadata(OUTSIDE_API, true);

const LIMITED = 'http:limited-by-address';

/** Limits requests per address for all paths with the first segment of one of the controller's routes, such as `/account/…`. */
export const LimitsByAddress = () => SetMetadata(LIMITED, true);

/** Tells whether the controller has {@link LimitsByAddress}. */
export function isLimitedByAddress(controller: object): boolean {
  return Reflect.hasMetadata(LIMITED, controller);
}

/** Tells whether the controller has {@link OutsideApi}. */
export function isOutsideApi(controller: object): boolean {
  return Reflect.hasMetadata(OUTSIDE_API, controller);
}
