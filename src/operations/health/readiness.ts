import { Injectable } from '@nestjs/common';
import type { EntryPoint } from '../../http/pipeline/entry-point.js';

/** Readiness. During shutdown `/readyz` fails, and responses have `Connection: close` (RFC 9112 §9.6), so that no request is lost. */
@Injectable()
export class Readiness {
  ending = false;
  #entryPoint: EntryPoint | undefined;

  watch(entryPoint: EntryPoint): void {
    this.#entryPoint = entryPoint;
  }

  end(): void {
    this.ending = true;
    this.#entryPoint?.end();
  }
}
