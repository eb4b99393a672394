import { Injectable } from '@nestjs/common';
import type { EntryPoint } from '../../http/pipeline/entry-point.js';

/** Readiness: during shutdown, `/readyz` fails, and the server closes connections after their responses (RFC 9112 §9.6). */
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
