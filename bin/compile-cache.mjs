import module from 'node:module';
import { join } from 'node:path';

/**
 * Keeps what V8 made of the modules, so that the next start need not parse them again. Beside what was built, where only whoever
 * may change the program itself can write: not in Node's default, the temporary directory, where anybody could lay code. In an
 * image that cannot be written to nothing is kept.
 */
export function keepCompiled() {
  module.enableCompileCache(join(import.meta.dirname, '../dist/.compiled'));
}
