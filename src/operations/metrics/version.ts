import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The version in package.json, which is above both `src/` and `dist/src/`. */
export const VERSION = readVersion(import.meta.dirname);

function readVersion(folder: string): string {
  const file = join(folder, 'package.json');
  if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  const above = dirname(folder);
  if (above === folder) return 'unknown';
  return readVersion(above);
}
