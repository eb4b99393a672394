import { Unavailable } from '../../database/postgres/unavailable.js';

/** Too many sign-ins are in progress: the password of this one was not checked, and the attempt is not counted. */
export class Busy extends Unavailable {
  override name = 'Busy';

  constructor() {
    super('too many sign-ins at once');
  }
}
