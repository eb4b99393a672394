import { SetMetadata } from '@nestjs/common';

const OUTSIDE_API = 'http:outside-api';

/**
 * The controller's routes are no part of the API: their answers are no JSON of ours, so that neither `Accept` nor the query is
 * judged, and other methods than they have are 404. It opens nothing: who may call them is still to be said.
 */
export const OutsideApi = () => SetMetadata(OUTSIDE_API, true);

/** Tells whether {@link OutsideApi} stands on the controller. */
export function isOutsideApi(controller: object): boolean {
  return Reflect.hasMetadata(OUTSIDE_API, controller);
}
