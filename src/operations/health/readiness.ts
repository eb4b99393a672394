import { Injectable } from '@nestjs/common';
import type { FrontDoor } from '../../http/pipeline/front-door.js';

/** Readiness. During shutdown `/readyz` fails, and responses have `Connection: close` (RFC 9112 §9.6), so that no request is lost. */
@Injectable()
export class Readiness {
  ending = false;
  #frontDoor: FrontDoor | undefined;

  watch(frontDoor: FrontDoor): void {
    this.#frontDoor = frontDoor;
  }

  end(): void {
    this.ending = true;
    this.#frontDoor?.end();
  }
}
