import { SetMetadata } from '@nestjs/common';

const OUTSIDE_API = 'http:outside-api';

/**
 * Marks routes that are not part of the API: their responses are not the API's JSON, so neither `Accept` nor the query is checked. It
 * opens nothing: the controller still has to declare who may call them.
 */
export const OutsideApi = () => SetMetadata(OUTSIDE_API, true);

const LIMITED = 'http:limited-by-address';

/** Limits the requests that one address sends to any path with the same first segment as these routes: `/account/…`. */
export const LimitsByAddress = () => SetMetadata(LIMITED, true);

/** Tells whether the controller has {@link LimitsByAddress}. */
export function isLimitedByAddress(controller: object): boolean {
  return Reflect.hasMetadata(LIMITED, controller);
}

/** Tells whether the controller has {@link OutsideApi}. */
export function isOutsideApi(controller: object): boolean {
  return Reflect.hasMetadata(OUTSIDE_API, controller);
}
