import { Injectable } from '@nestjs/common';
import type { FrontDoor } from '../../http/pipeline/front-door.js';

/**
 * Whether requests may be sent here. Once the server is ending, `/readyz` tells balancers so, and every response tells its client:
 * `Connection: close` (RFC 9112 §9.6), since a request sent on a connection that is being closed is lost.
 */
@Injectable()
export class Readiness {
  /** Whether the process was told to end. */
  ending = false;
  #frontDoor: FrontDoor | undefined;

  /** @param frontDoor of the server that listens */
  watch(frontDoor: FrontDoor): void {
    this.#frontDoor = frontDoor;
  }

  end(): void {
    this.ending = true;
    this.#frontDoor?.end();
  }
}
