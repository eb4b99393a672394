import { Unavailable } from '../database/unavailable.js';

/** Too many sign-ins are under way: the password of this one was not looked at, and it counts as nothing. */
export class Busy extends Unavailable {
  override name = 'Busy';

  constructor() {
    super('too many sign-ins at once');
  }
}
