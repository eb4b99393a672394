import { SetMetadata } from '@nestjs/common';

const OUTSIDE_API = 'http:outside-api';

/** Marks routes without the API's JSON: guards skip their `Accept` and query. The controller must still declare its access. */
export const OutsideApi = () => SetMetadata(OUTSIDE_API, true);

const LIMITED = 'http:limited-by-address';

/** Limits requests per address to all paths with the same first segment: `/account/…`. */
export const LimitsByAddress = () => SetMetadata(LIMITED, true);

/** Tells whether the controller has {@link LimitsByAddress}. */
export function isLimitedByAddress(controller: object): boolean {
  return Reflect.hasMetadata(LIMITED, controller);
}

/** Tells whether the controller has {@link OutsideApi}. */
export function isOutsideApi(controller: object): boolean {
  return Reflect.hasMetadata(OUTSIDE_API, controller);
}
