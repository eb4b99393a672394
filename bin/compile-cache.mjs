import module from 'node:module';
import { join } from 'node:path';

/**
 * Caches V8's compiled modules next to the build, writable only by users who may change the program. In Node's default, the temporary
 * directory, anyone could place code. A read-only image caches nothing.
 */
export function keepCompiled() {
  module.enableCompileCache(join(import.meta.dirname, '../dist/.compiled'));
}
