import { SetMetadata } from '@nestjs/common';

const OUTSIDE_API = 'http:outside-api';

/** Marks a controller outside the JSON API: guards ignore `Accept` and query of its requests. It must still declare its access. */
export const OutsideApi = () => SetMetadata(OUTSIDE_API, true);

const LIMITED = 'http:limited-by-address';

/** Limits requests per address, counted together for all paths with the same first segment, such as `/account/…`. */
export const LimitsByAddress = () => SetMetadata(LIMITED, true);

/** Tells whether the controller has {@link LimitsByAddress}. */
export function isLimitedByAddress(controller: object): boolean {
  return Reflect.hasMetadata(LIMITED, controller);
}

/** Tells whether the controller has {@link OutsideApi}. */
export function isOutsideApi(controller: object): boolean {
  return Reflect.hasMetadata(OUTSIDE_API, controller);
}
