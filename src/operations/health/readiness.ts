import { Injectable } from '@nestjs/common';
import type { Connections } from '../../http/pipeline/connections.js';

/**
 * Whether requests may be sent here. Once the server is ending, `/readyz` tells balancers so, and every response tells its client:
 * `Connection: close` (RFC 9112 §9.6), since a request sent on a connection that is being closed is lost.
 */
@Injectable()
export class Readiness {
  #ending = false;
  #connections: Connections | undefined;

  /** Whether the process was told to end. */
  get ending(): boolean {
    return this.#ending;
  }

  /** @param connections of the server that listens */
  watch(connections: Connections): void {
    this.#connections = connections;
  }

  end(): void {
    this.#ending = true;
    this.#connections?.end();
  }
}
