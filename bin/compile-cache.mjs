import module from 'node:module';
import { join } from 'node:path';

/**
 * Keeps V8's compiled modules, so the next start need not parse them again. They are kept beside the build, where only those who
 * may change the program itself can write: not in Node's default, the temporary directory, where anyone could place code. In a
 * read-only image nothing is kept.
 */
export function keepCompiled() {
  module.enableCompileCache(join(import.meta.dirname, '../dist/.compiled'));
}
