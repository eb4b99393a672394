import { Injectable } from '@nestjs/common';

/** Whether the process is about to end; set first of all when it is told to. */
@Injectable()
export class Readiness {
  ending = false;
}
