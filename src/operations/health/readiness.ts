import { Injectable } from '@nestjs/common';

/** Whether the server is shutting down: then `/readyz` fails, and long polls end. */
@Injectable()
export class Readiness {
  ending = false;
}
