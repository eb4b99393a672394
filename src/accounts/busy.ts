import { Unavailable } from '../database/unavailable.js';

/** Too many sign-ins are under way: the password of this one was not checked, and the attempt is not counted. */
export class Busy extends Unavailable {
  override name = 'Busy';

  constructor() {
    super('too many sign-ins at once');
  }
}
